"""A stand-in for the part of the package that the exporter uses. It has the package's names and none of its code."""


class FunctionCall:
    def __init__(self, function, args, placeholder_args=None):
        self.function, self.args, self.placeholder_args = function, args, placeholder_args


class Parameters:
    def __init__(self, properties):
        self.properties = properties

    def model_json_schema(self):
        return {"type": "object", "title": "Input", "properties": self.properties, "required": list(self.properties)}


class Function:
    def __init__(self, name, description, properties, run):
        self.name, self.description, self.parameters, self.run = name, description, Parameters(properties), run


class FunctionsRuntime:
    def __init__(self, functions):
        self.functions = {f.name: f for f in functions}

    def run_function(self, env, function, kwargs, raise_on_error=False):
        try:
            return self.functions[function].run(env, **kwargs), None
        except Exception as err:
            return "", f"{type(err).__name__}: {err}"

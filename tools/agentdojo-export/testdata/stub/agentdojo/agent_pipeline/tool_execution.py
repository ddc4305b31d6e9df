import json


def tool_result_to_str(result, dump_fn=None):
    return result if isinstance(result, str) else json.dumps(result)

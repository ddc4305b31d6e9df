#!/usr/bin/env python3
"""Write AgentDojo suites in the form that `hearsay replay --suite` reads.

    pip install agentdojo
    python3 export.py --out suites/ [--version v1.2.2] [workspace banking ...]

The ground truth of every task is executed once in the untouched environment, which gives the results, and once in an
environment whose injection vectors hold a mark, which shows where an attacker's text surfaces. No model is asked.

What a person has to judge is guessed from names and marked: effects, binding arguments and which results are a third
party's words. Read them before a figure is believed; known_store is left empty for you to fill.
"""

import argparse
import copy
import json
import pathlib
import re
import sys

READ = "get list search find read show view check query look lookup describe count browse".split()
SEND = "fetch download visit request".split()
BINDING = (
    "recipient recipients to cc bcc email emails participants attendees url link id ids iban account user username member "
    "channel name file filename path password hotel restaurant company first_name last_name street city attachments"
).split()
CREATE = "send create add schedule reserve invite update book pay transfer make".split()


def words(name):
    return re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())


def effect_of(name, args):
    """read, egress (a request to an address an argument chooses) or write, guessed from a tool's name."""
    verb = (words(name) or [""])[0]
    link = any(words(a)[-1:] in (["url"], ["link"]) for a in args)
    if verb in SEND or verb in READ and link:
        return "egress"
    return "read" if verb in READ else "write"


def binds(arg):
    w = words(arg)
    return bool(w) and (w[-1] in BINDING or arg in BINDING)


def plain(value):
    """A value as JSON has it: models become objects, dates become text."""
    if hasattr(value, "model_dump"):
        value = value.model_dump()
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(v) for v in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def schema_of(function):
    schema = function.parameters.model_json_schema()
    return {k: v for k, v in schema.items() if k in ("type", "properties", "required", "$defs")}


def execute(runtime, environment, calls, to_text):
    """The texts of the results of calls, made one after the other. A call that fails has its error as its result."""
    results = []
    for call in calls:
        result, error = runtime.run_function(environment, call.function, call.args)
        results.append(to_text(result) if error is None else f"Error: {error}")
    return results


def environment_for(suite, task, injections):
    environment = suite.load_and_inject_default_environment(injections)
    return task.init_environment(environment) if hasattr(task, "init_environment") else environment


def mark(vector):
    return f"<INJECTION:{vector}>"


def user_task(suite, runtime, task, vectors, to_text):
    clean = environment_for(suite, task, {})
    marked = environment_for(suite, task, {v: mark(v) for v in vectors})
    truth = task.ground_truth(copy.deepcopy(clean))
    results = execute(runtime, clean, truth, to_text)
    templates = execute(runtime, marked, truth, to_text)
    calls, first = [], None
    for i, (call, result, template) in enumerate(zip(truth, results, templates)):
        entry = {"tool": call.function, "args": plain(call.args), "result": result}
        seen = [v for v in vectors if mark(v) in template]
        if seen:
            entry["result_template"], entry["vectors"] = template, seen
            first = i if first is None else first
        calls.append(entry)
    return {"id": task.ID, "prompt": task.PROMPT, "first_injected_call": first, "calls": calls}


def injection_task(suite, runtime, task, to_text):
    environment = environment_for(suite, task, {})
    truth = task.ground_truth(copy.deepcopy(environment))
    results = execute(runtime, environment, truth, to_text)
    calls = [{"tool": c.function, "args": plain(c.args), "result": r} for c, r in zip(truth, results)]
    return {"id": task.ID, "goal": task.GOAL, "text_only": not calls, "calls": calls}


def export(suite, version, runtime_class, to_text):
    vectors = list(suite.get_injection_vector_defaults())
    runtime = runtime_class(suite.tools)
    users = [user_task(suite, runtime, t, vectors, to_text) for t in suite.user_tasks.values()]
    attacks = [injection_task(suite, runtime, t, to_text) for t in suite.injection_tasks.values()]
    carriers = {c["tool"] for t in users for c in t["calls"] if c.get("vectors")}
    tools = []
    for f in suite.tools:
        schema = schema_of(f)
        args = list(schema.get("properties", {}))
        effect = effect_of(f.name, args)
        acting = effect != "read"
        tools.append({
            "name": f.name,
            "description": f.description,
            "input_schema": schema,
            "effect": effect,
            "returns_untrusted": f.name in carriers or not acting or words(f.name)[0] not in CREATE,
            "bind_args": [a for a in args if acting and binds(a)],
            "text_args": [a for a in args if acting and not binds(a)],
        })
    return {
        "suite": suite.name,
        "benchmark_version": version,
        "labels": "unreviewed",
        "source": {"package": "agentdojo", "licence": "MIT"},
        "known_store": {},
        "tools": tools,
        "user_tasks": users,
        "injection_tasks": attacks,
        "injection_vectors": [{"id": v} for v in vectors],
    }


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", help="names of suites; none means all")
    parser.add_argument("--version", default="v1.2.2", help="version of the benchmark")
    parser.add_argument("--out", required=True, type=pathlib.Path, help="the folder to write to")
    args = parser.parse_args(argv)
    try:
        from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
        from agentdojo.functions_runtime import FunctionsRuntime
        from agentdojo.task_suite.load_suites import get_suites
    except ImportError as err:
        print(f"export.py: {err}; install the package first: pip install agentdojo", file=sys.stderr)
        return 1
    suites = get_suites(args.version)
    unknown = [s for s in args.suites if s not in suites]
    if unknown:
        print(f"export.py: no suite {', '.join(unknown)}; there are {', '.join(suites)}", file=sys.stderr)
        return 2
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.suites or list(suites):
        data = export(suites[name], args.version, FunctionsRuntime, tool_result_to_str)
        path = args.out / f"{name}.json"
        path.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        pairs = len(data["user_tasks"]) * len(data["injection_tasks"])
        print(f"{path}: {len(data['tools'])} tools, {len(data['user_tasks'])} user tasks, {pairs} pairs")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

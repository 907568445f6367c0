"""Which values of parameters do MXNet and Symbind accept? Takes recorded cases, changes one parameter at a time to
values at and beyond the borders of sensible ones, asks both libraries, and prints where one answers and the other
refuses, or where the answers differ.

usage: .venv/bin/python check_rules.py --mxnet oracle-env/bin/python --symbind-path build/release/python [OPERATOR...]

Each library runs in processes of its own: a question that ends one (a crash, a loop without an end) counts as a
refusal. What is known and meant is in rule_differences.txt: "operator parameter value: why", where * stands for any
text.
"""

import argparse
import fnmatch
import gzip
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
INTEGERS = ["-2", "-1", "0", "1", "2", "3", "70"]
NUMBERS = ["-1", "-0.5", "0", "0.5", "1", "1.5", "2", "1000000", "nan"]
SECONDS_OF_A_QUESTION = 5


# ---- In a child: the library answers --------------------------------------------------------------------------------


def numpy_of(array):
    import numpy as np

    if "data" not in array:
        return np.zeros(array["shape"], array["dtype"])
    data = [float(x) if isinstance(x, str) else x for x in array["data"]]
    return np.array(data, array["dtype"]).reshape(array["shape"])


def network_json(question):
    """The operator on variables as a network's JSON, which both libraries read in the same way."""
    names = [each["name"] for each in question["inputs"]]
    nodes = [{"op": "null", "name": name, "inputs": []} for name in names]
    count = len(names)
    operator = {"op": question["op"], "name": "tried", "attrs": question["attrs"]}
    nodes.append({**operator, "inputs": [[i, 0, 0] for i in range(count)]})
    return json.dumps(
        {
            "nodes": nodes,
            "arg_nodes": list(range(count)),
            "node_row_ptr": list(range(count + 2)),
            "heads": [[count, 0, 0]],
            "attrs": {"mxnet_version": ["int", 10901]},
        }
    )


def answer(mx, question):
    """Output and gradients as lists of numbers, or the text of the error."""
    arrays = {each["name"]: numpy_of(each["array"]) for each in question["inputs"]}
    try:
        net = mx.sym.load_json(network_json(question))
        held = {name: mx.nd.array(array, dtype=array.dtype) for name, array in arrays.items()}
        args = {name: held[name] for name in net.list_arguments()}
        aux = {name: held[name] for name in net.list_auxiliary_states()}
        grads = {name: mx.nd.zeros(args[name].shape, dtype=args[name].dtype) for name in args}
        backward = question["backward"]
        executor = net.bind(mx.cpu(), args, grads if backward else None, "write" if backward else "null", aux)
        result = executor.forward(is_train=True)[0]
        found = [result.asnumpy()]
        if backward:
            executor.backward([mx.nd.ones(result.shape, dtype=result.dtype)])
            found += [grads[name].asnumpy() for name in args]
        return {"shapes": [list(each.shape) for each in found], "values": [each.ravel().tolist() for each in found]}
    except Exception as error:  # whatever it is, it is a refusal
        return {"error": str(error).strip().splitlines()[-1][:200] if str(error).strip() else repr(error)[:200]}


def field_types(mx, names):
    """MXNet's own description of parameters: operator → {name: text}."""
    import ctypes

    from mxnet.base import _LIB, c_str, check_call, mx_uint, py_str

    described = {}
    for name in names:
        handle = ctypes.c_void_p()
        if _LIB.NNGetOpHandle(c_str(name), ctypes.byref(handle)):
            continue
        texts = [ctypes.POINTER(ctypes.c_char_p)() for _ in range(3)]
        count, single = mx_uint(), [ctypes.c_char_p() for _ in range(3)]
        check_call(
            _LIB.NNGetOpInfo(
                handle,
                *[ctypes.byref(each) for each in single[:2]],
                ctypes.byref(count),
                *[ctypes.byref(each) for each in texts],
                ctypes.byref(single[2]),
            )
        )
        described[name] = {py_str(texts[0][i]): py_str(texts[1][i]) for i in range(count.value)}
    return described


def child(library, questions_file, answers_file):
    """Answers all questions. They are answered in forks of this process: where one ends, the next continues."""
    mx = __import__(library)
    questions = json.loads(pathlib.Path(questions_file).read_text())
    done = 0
    while done < len(questions):
        process = os.fork()
        if process == 0:
            answer_from(mx, questions[done:], answers_file)
            os._exit(0)
        os.waitpid(process, 0)
        done = pathlib.Path(answers_file).read_text().count("\n")
        if done < len(questions):
            with open(answers_file, "a") as answers:
                answers.write(json.dumps({"error": "ended the process"}) + "\n")
            done += 1


def answer_from(mx, questions, answers_file):
    import resource
    import signal

    resource.setrlimit(resource.RLIMIT_DATA, (6 << 30, 6 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open(answers_file, "a") as answers:
        for question in questions:
            signal.alarm(SECONDS_OF_A_QUESTION)
            if question.get("describe"):
                reply = field_types(mx, question["describe"])
            elif question.get("fields"):
                reply = {
                    name: [list(field[:3]) for field in op.fields]
                    for name in mx._symbind._list_ops()
                    if (op := mx._symbind._find_op(name))
                }
            else:
                reply = answer(mx, question)
            answers.write(json.dumps(reply) + "\n")
            answers.flush()


# ---- The parent: questions and comparison ---------------------------------------------------------------------------


def ask(python, library, questions, path=None):
    """The answers of a library, in a process of its own."""
    one_thread = {"OMP_NUM_THREADS": "1", "MXNET_ENGINE_TYPE": "NaiveEngine"}  # such a process can be forked
    env = {**os.environ, "MXNET_SUBGRAPH_BACKEND": "NONE", **one_thread}
    if path:
        env["PYTHONPATH"] = str(path)
    with tempfile.TemporaryDirectory() as folder:
        questions_file, answers_file = (pathlib.Path(folder) / name for name in ("questions", "answers"))
        questions_file.write_text(json.dumps(questions))
        answers_file.write_text("")
        command = [python, __file__, "--child", library, questions_file, answers_file]
        run = subprocess.run(command, env=env, capture_output=True, text=True)
        if run.returncode:
            raise SystemExit(f"{library} cannot be asked:\n{run.stderr}")
        return [json.loads(line) for line in answers_file.read_text().splitlines()]


def recorded_cases(only):
    """operator → cases that MXNet answered, those with the fewest numbers first."""
    cases = {}
    for file in sorted((HERE / "recorded").glob("*.json.gz")):
        recorded = json.loads(gzip.decompress(file.read_bytes()))
        if recorded.get("format") != "symbind-oracle-1":
            continue
        for case in recorded["cases"]:
            odd = case.get("error") or case.get("quirk") or case.get("onednn") is False
            if not odd and case.get("inputs") and (not only or case["op"] in only):
                cases.setdefault(case["op"], []).append(case)
    for of_op in cases.values():
        of_op.sort(key=lambda case: sum(math.prod(each["array"]["shape"]) for each in case["inputs"]))
    return cases


def tuples_like(text):
    numbers = [part for part in text.strip("()[] ").split(",") if part.strip()] or ["1", "1"]
    for value in ("0", "-1", "1", "2"):
        yield "(" + ", ".join([value] * len(numbers)) + ("," if len(numbers) == 1 else "") + ")"
    yield "(" + ", ".join([*numbers, "1"]) + ")"
    yield "(" + ", ".join(numbers[:-1]) + ("," if len(numbers) == 2 else "") + ")"


def values_to_try(kind, described, now):
    if "{" in described:  # words
        words = described[described.index("{") + 1 : described.index("}")].replace("'", "").split(",")
        return [word.strip() for word in words]
    if kind.startswith("int"):
        return INTEGERS
    if kind.startswith("float"):
        return NUMBERS
    if kind.startswith("tuple"):
        return list(tuples_like(now or ""))
    return ["True", "False"] if kind.startswith("boolean") else []


def make_questions(cases, fields, described):
    questions = []
    for op, of_op in sorted(cases.items()):
        usable = [case for case in of_op if all(each["array"]["shape"] for each in case["inputs"])] or of_op
        for name, kind, default in fields.get(op, []):
            with_it = [case for case in usable if name in case["attrs"]] or usable
            for case in with_it[:2]:
                for value in values_to_try(kind, described.get(op, {}).get(name, ""), case["attrs"].get(name, default)):
                    questions.append(
                        {
                            "op": op,
                            "parameter": name,
                            "value": value,
                            "attrs": {**case["attrs"], name: value},
                            "inputs": case["inputs"],
                            "backward": case["grad_req"] != "null",
                            "random": case.get("compare") == "shape",
                            "case": case["id"],
                        }
                    )
    return questions


def is_close(ours, theirs):
    def close(a, b):
        if isinstance(a, (int, float)) and isinstance(b, (int, float)):
            both_nan = math.isnan(a) and math.isnan(b)
            return both_nan or a == b or abs(a - b) <= 1e-4 + 2e-3 * max(abs(a), abs(b))
        return a == b

    return all(
        len(one) == len(other) and all(map(close, one, other))
        for one, other in zip(ours["values"], theirs["values"], strict=True)
    )


def difference(question, ours, theirs):
    """A line about how the answers differ, or None."""
    if "error" in ours and "error" in theirs:
        return None
    if "error" in ours:
        return f"only MXNet answers {theirs['shapes'][0]} ({ours['error']})"
    if "error" in theirs:
        return f"only Symbind answers {ours['shapes'][0]} ({theirs['error']})"
    if ours["shapes"] != theirs["shapes"]:
        return f"shapes differ: ours {ours['shapes']}, MXNet's {theirs['shapes']}"
    return None if question["random"] or is_close(ours, theirs) else "values differ"


def known_differences():
    file = HERE / "rule_differences.txt"
    lines = file.read_text().splitlines() if file.exists() else []
    return [line.split(": ")[0].split(maxsplit=2) for line in lines if line and not line.startswith("#")]


def is_known(question, known):
    asked = (question["op"], question["parameter"], question["value"])
    return any(all(map(fnmatch.fnmatchcase, asked, pattern)) for pattern in known)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mxnet", required=True, help="the Python that has MXNet 1.9.1")
    parser.add_argument("--symbind-path", help="the folder of the package, where it is not installed")
    parser.add_argument("operators", nargs="*")
    options = parser.parse_args()
    cases = recorded_cases(set(options.operators))
    fields = ask(sys.executable, "symbind", [{"fields": True}], options.symbind_path)[0]
    described = ask(options.mxnet, "mxnet", [{"describe": sorted(cases)}])[0]
    questions = make_questions(cases, fields, described)
    theirs = ask(options.mxnet, "mxnet", questions)
    ours = ask(sys.executable, "symbind", questions, options.symbind_path)
    known, found = known_differences(), {}
    for question, own, other in zip(questions, ours, theirs, strict=True):
        text = difference(question, own, other)
        if text and not is_known(question, known):
            found.setdefault((question["op"], question["parameter"], question["value"], text), question["case"])
    for (op, parameter, value, text), case in found.items():
        print(f"{op} {parameter} {value}: {text} [{case}]")
    print(f"{len(questions)} questions about {len(cases)} operators, {len(found)} differences that are not known")
    return 1 if found else 0


if __name__ == "__main__":
    if "--child" in sys.argv:
        child(*sys.argv[sys.argv.index("--child") + 1 :])
    else:
        sys.exit(main())

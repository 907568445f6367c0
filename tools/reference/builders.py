"""How operators are written in C++: the builder or function and the parameter struct of each."""

import dataclasses
import os
import re


@dataclasses.dataclass
class Builder:
    """The C++ side of an operator."""

    name: str  # fully_connected
    struct: str  # FullyConnected; of a template without its argument
    header: str


def builders(root):
    """Operator → its Builder, from the headers and registrations in symbind/ops."""
    folder = os.path.join(root, "symbind", "ops")
    by_struct, result = {}, {}
    sources = ""
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            text = file.read()
        header = f"symbind/ops/{name}"
        if name.endswith(".cc"):
            sources += text
        if not name.endswith(".h"):
            continue
        for struct, builder in re.findall(r"inline constexpr Builder<(\w+)> (\w+);", text):
            by_struct[struct] = Builder(builder, struct, header)
        for struct, op, builder in re.findall(r'inline constexpr Builder<(\w+)<"(\w+)">> (\w+);', text):
            result[op] = Builder(builder, struct, header)
        for function, op in re.findall(
            r'T (\w+)\(const T& \w+, const std::string& name = ""\) \{ return unary<"(\w+)">', text
        ):
            result[op] = Builder(function, "Unary", header)
    structs = dict(re.findall(r"OpDef (define_\w+)\(Op<(\w+)> ", sources))
    registered = [(op, structs.get(f)) for op, f in re.findall(r'\badd\(registry, "(\w+)", (define_\w+)\)', sources)]
    registered += [(op, struct) for struct, op in re.findall(r'\badd<(\w+)>\(registry, "(\w+)"', sources)]
    return result | {op: by_struct[struct] for op, struct in registered if struct in by_struct}

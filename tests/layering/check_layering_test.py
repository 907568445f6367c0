"""The layering check, tried on small trees: a right one passes, and each wrong one is caught for its own reason."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

from check_layering import MAY_INCLUDE, Checker  # noqa: E402


class LayeringCheck(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.repository = Path(holder.name)
        self.write("README.md", "# symbind\n")
        for folder, allowed in MAY_INCLUDE.items():
            self.write(f"{folder}/README.md", f"# {folder}\n\nMay include: {', '.join(allowed) or 'nothing'}.\n")
        self.write("core/shape.h", "#pragma once\n\n#include <vector>\n")
        self.write("symbind.h", '#pragma once\n\n#include "symbind/core/shape.h"\n')

    def write(self, path, text, within="symbind"):
        path = self.repository / within / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def assert_clean(self):
        self.assertEqual(Checker(self.repository).check(), [])

    def assert_caught(self, *words):
        errors = Checker(self.repository).check()
        self.assertEqual(len(errors), 1, errors)
        for word in words:
            self.assertIn(word, errors[0])

    def test_a_right_tree_passes(self):
        self.write("graph/symbol.cc", '#include <nlohmann/json.hpp>\n\n#include "symbind/core/shape.h"\n')
        self.write("backend/onednn/conv.cc", '#include <dnnl.hpp>\n#include "symbind/backend/cpu/conv.h"\n')
        self.write("backend/cuda/conv.cu", "#include <cuda_runtime.h>\n#if CUDA_VERSION\n#endif\n")
        self.write("exec/plan.cc", '#include "symbind/passes/target.h"\n')
        self.assert_clean()

    def test_a_generated_list_may_be_included_by_any_source(self):
        self.write("ops/all_ops.cc", '#include "symbind/families/ops.inc"\n')
        self.write("backend/cuda/source.cc", '#include "symbind/embedded/headers.inc"\n')
        self.assert_clean()

    def test_a_generated_list_is_not_installed(self):
        self.write("ops/all.h", '#pragma once\n#include "symbind/families/ops.inc"\n')
        self.assert_caught("ops/all.h:2", "ops may not include families")

    def test_including_a_higher_room_is_caught(self):
        self.write("core/shape.cc", '#include "symbind/core/shape.h"\n#include "symbind/graph/symbol.h"\n')
        self.assert_caught("core/shape.cc:2", "core may not include graph")

    def test_data_needs_only_core(self):
        self.write("data/mnist.cc", '#include "symbind/graph/symbol.h"\n')
        self.assert_caught("data may not include graph")

    def test_backends_do_not_include_each_other(self):
        self.write("backend/cuda/conv.cc", '#include "symbind/backend/onednn/conv.h"\n')
        self.assert_caught("backend/cuda may not include backend/onednn")

    def test_a_gpu_does_not_include_the_cpu(self):
        self.write("backend/cuda/conv.cc", '#include "symbind/backend/cpu/conv.h"\n')
        self.assert_caught("backend/cuda may not include backend/cpu")

    def test_backends_are_out_of_reach_from_above(self):
        self.write("kvstore/sum.cc", '#include "symbind/backend/cpu/loops.h"\n')
        self.assert_caught("kvstore may not include backend/cpu")

    def test_an_optional_folder_is_out_of_reach_from_above(self):
        self.write("exec/plan.cc", '#include "symbind/backend/cuda/stream.h"\n')
        self.assert_caught("exec may not include backend/cuda")

    def test_an_optional_folder_is_out_of_reach_from_its_parent(self):
        self.write("backend/all.cc", '#include "symbind/backend/cuda/stream.h"\n')
        self.assert_caught("backend may not include backend/cuda")

    def test_an_optional_folder_inside_a_room_may_include_the_room(self):
        self.write("kvstore/mpi/README.md", f"May include: {', '.join(MAY_INCLUDE['kvstore'])}.\n")
        self.write("kvstore/mpi/mpi.cc", '#include <mpi.h>\n#include "symbind/kvstore/kvstore.h"\n')
        self.assert_clean()

    def test_the_environment_is_read_in_one_place(self):
        self.write("core/environment.cc", 'const char* text = std::getenv("A");\n')
        self.assert_clean()
        self.write("exec/plan.cc", 'const char* text = std::getenv("A");\n')
        self.assert_caught("exec/plan.cc:1", "core/environment.cc alone")

    def test_a_vendor_header_outside_its_folder_is_caught(self):
        self.write("exec/plan.cc", "#include <cuda_runtime.h>\n")
        self.assert_caught("exec/plan.cc:1", "<cuda_runtime.h>", "backend/cuda")

    def test_a_conditional_outside_the_backends_is_caught(self):
        self.write("core/log.cc", "int a;\n#ifdef NDEBUG\n")
        self.assert_caught("core/log.cc:2", "conditionals")

    def test_an_installed_header_may_not_need_a_private_library(self):
        self.write("graph/json.h", "#pragma once\n#include <nlohmann/json.hpp>\n")
        self.assert_caught("graph/json.h:2", "nlohmann")

    def test_an_installed_header_may_not_need_a_backend(self):
        self.write("exec/plan.h", '#pragma once\n#include "symbind/backend/cpu/target.h"\n')
        self.assert_caught("exec/plan.h:2", "not installed")

    def test_the_umbrella_header_is_not_used_inside(self):
        self.write("train/module.cc", '#include "symbind/symbind.h"\n')
        self.assert_caught("umbrella")

    def test_a_relative_include_is_caught(self):
        self.write("core/shape.cc", '#include "shape.h"\n')
        self.assert_caught("repository root")

    def test_a_header_without_pragma_once_is_caught(self):
        self.write("core/dtype.h", "int a;\n")
        self.assert_caught("#pragma once")

    def test_a_fixed_width_integer_without_its_header_is_caught(self):
        self.write("kvstore/message.h", "#pragma once\n#include <string>\n\nuint64_t a;\n")
        self.assert_caught("kvstore/message.h:4", "uint64_t", "<cstdint>")
        for name in ("int8_t", "int_fast16_t", "uint_least32_t", "std::intptr_t", "uintmax_t"):
            self.write("kvstore/message.h", f"#pragma once\n{name} a;\n")
            self.assert_caught("kvstore/message.h:2", name.removeprefix("std::"))

    def test_fixed_width_integers_are_checked_outside_the_library(self):
        for folder in ("tests", "bench", "examples", "python/src"):
            self.write("part/main.cc", "int64_t a;\n", within=folder)
            self.assert_caught(f"{folder}/part/main.cc:1", "int64_t")
            self.write("part/main.cc", "#include <cstdint>\nint64_t a;\n", within=folder)
        self.assert_clean()

    def test_fixed_width_integers_may_come_through_own_headers(self):
        self.write("core/cycle.h", '#pragma once\n#include "symbind/core/shape.h"\n#include "symbind/core/size.h"\n')
        self.write("core/size.h", '#pragma once\n#include "symbind/core/cycle.h"\n')
        self.write("ops/conv.cc", '#include "symbind/core/cycle.h"\nint64_t a;\n')
        self.assert_caught("ops/conv.cc:2", "int64_t")
        self.write("core/shape.h", "#pragma once\n#include <cinttypes>\n")
        self.assert_clean()
        self.write("casters.h", '#pragma once\n#include "symbind/core/cycle.h"\n', within="python/src")
        self.write("bind.cc", '#include "casters.h"\nint64_t a;\n', within="python/src")
        self.assert_clean()

    def test_fixed_width_integers_in_comments_and_strings_need_no_header(self):
        self.write("core/a.cc", '// int64_t\n/* uint8_t\nint8_t */\nconst char* a = "\\"int32_t";\nint int64_type;\n')
        self.assert_clean()
        self.write("core/a.cc", '/*\n*/ const char* a = "//"; int64_t b;\n')
        self.assert_caught("core/a.cc:2", "int64_t")

    def test_a_missing_readme_is_caught(self):
        self.write("ops/nn/conv.cc", "\n")
        self.assert_caught("ops/nn/README.md", "missing")

    def test_a_readme_without_its_list_is_caught(self):
        self.write("graph/README.md", "# graph\n")
        self.assert_caught("graph/README.md", '"May include: core." is missing')

    def test_a_readme_that_disagrees_is_caught(self):
        self.write("graph/README.md", "May include: core, ops.\n")
        self.assert_caught('says "May include: core, ops."', '"May include: core."')

    def test_a_folder_without_a_row_is_caught(self):
        self.write("attic/README.md", "May include: nothing.\n")
        self.assert_caught("attic", "no row")


if __name__ == "__main__":
    unittest.main()

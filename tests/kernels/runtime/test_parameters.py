"""Structs of kernels' parameters: C++ lays them out as ctypes does, whatever their order, and no kernel declares one of its own."""
import ctypes
import re
import shutil

import pytest

from mxnet.kernels.runtime import build, contract, libraries, parameters
from mxnet.kernels.runtime.contract import Kernel
from mxnet.kernels.runtime.parameters import AdamaxParams, ConvParams, FusedMlpParams, field_names

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")


def declared(structs):
    """The size of each struct and the offset and size of each of its fields, as ctypes has them."""
    numbers = []
    for struct in structs:
        fields = [getattr(struct, name) for name in field_names(struct)]
        numbers += [ctypes.sizeof(struct), *(number for field in fields for number in (field.offset, field.size))]
    return numbers


def compiled(header, structs, folder):
    """The same numbers in C++, for a header and the fields that the structs name."""
    numbers = ", ".join(text for s in structs for text in (f"sizeof({s.__name__})", *(
        part for name in field_names(s) for part in (f"offsetof({s.__name__}, {name})", f"sizeof({s.__name__}::{name})"))))
    (folder / "probe").mkdir(parents=True)
    (folder / "probe" / "parameters.h").write_text(header)
    (folder / "probe" / "layout.cpp").write_text(f'#include "probe/parameters.h"\nextern "C" const int64_t layout[] = {{{numbers}}};\n')
    library = folder / "layout.so"
    library.write_bytes(build.library(folder, "probe/layout", build.FLAGS, libraries._TORCH, ["-lgomp"]))
    return list((ctypes.c_int64 * len(declared(structs))).in_dll(ctypes.CDLL(str(library)), "layout"))


@needs_compiler
def test_structs_are_compiled_with_the_sizes_and_offsets_of_the_declaration(tmp_path):
    assert len(parameters.STRUCTS) >= 17
    assert compiled(parameters.header(), parameters.STRUCTS, tmp_path) == declared(parameters.STRUCTS)


@needs_compiler
@pytest.mark.parametrize("swapped", [("r", "s"), ("pad_h", "dilate_w")])
def test_two_swapped_fields_are_an_error(tmp_path, swapped):
    order = {swapped[0]: swapped[1], swapped[1]: swapped[0]}
    other = type("ConvParams", (ctypes.Structure,), {"_fields_": [(order.get(name, name), kind) for name, kind in ConvParams._fields_]})
    assert compiled(parameters.header([other]), [ConvParams], tmp_path) != declared([ConvParams])
    assert ctypes.sizeof(other) == ctypes.sizeof(ConvParams)  # their sizes alone would not tell


@needs_compiler
def test_another_layout_does_not_compile(tmp_path):
    header = parameters.header([AdamaxParams]).replace("  float beta1;", "  int64_t beta1;")
    with pytest.raises(OSError, match="comparison reduces to"):
        compiled(header, [AdamaxParams], tmp_path)


def test_the_header_of_a_struct():
    class Two(ctypes.Structure):
        _fields_ = [("scale", ctypes.c_float), ("widths", ctypes.c_int64 * 3)]

    assert parameters.header([Two]).endswith("""
struct Two {
  float scale;
  int64_t widths[3];
};
static_assert(sizeof(Two) == 32, "size of Two");
static_assert(offsetof(Two, scale) == 0, "offset of Two::scale");
static_assert(offsetof(Two, widths) == 8, "offset of Two::widths");
""")


@pytest.mark.parametrize("name", build.sources(libraries.FOLDER))
def test_no_source_declares_parameters_itself_or_reads_them_by_number(name):
    text = (libraries.FOLDER / f"{name}.cpp").read_text()
    assert not re.search(r"struct \w*(Sizes|Params|Parameters)\b|int64_t\s*\*\s*(sizes|params)\b", text)


def test_kernels_pass_fields_by_name():
    kernel = Kernel("some", "entry", {"a": "float32 (n, c)"}, parameters=FusedMlpParams,
                    sizes={"widths": "(c, 2, 1, 0, 0, 0, 0, 0, 0)", "relu_mask": "3"})
    contract._contracts.remove(kernel)
    assert kernel.sizes == ("n", "(c, 2, 1, 0, 0, 0, 0, 0, 0)", "3")
    made = FusedMlpParams(5, (7, 2, 1, 0, 0, 0, 0, 0, 0), 3)
    assert (made.n, list(made.widths), made.relu_mask) == (5, [7, 2, 1, 0, 0, 0, 0, 0, 0], 3)


def test_a_field_that_a_struct_lacks():
    with pytest.raises(ValueError, match="some.entry: FusedMlpParams has the fields n, widths, relu_mask, received rows"):
        Kernel("some", "entry", {"a": "float32 (n, c)"}, parameters=FusedMlpParams, sizes={"rows": "n"})


def test_numbers_in_a_struct():
    kernel = Kernel("some", "entry", {"a": "float32 (n)"}, numbers=AdamaxParams)
    contract._contracts.remove(kernel)
    assert kernel.numbers == "f" * 8

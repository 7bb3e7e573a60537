"""The binary interface of XLA that `xla_ffi.h` declares, beside the header that JAX installs."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

OURS = Path(__file__).parents[2] / "rbda_ros" / "engine" / "xla_ffi.h"
RECORDS = {
    "XlaExtension": ("XLA_FFI_Extension_Base", {"size": "struct_size"}),
    "XlaVersion": ("XLA_FFI_Api_Version", {"major": "major_version", "minor": "minor_version"}),
    "XlaErrorArgs": ("XLA_FFI_Error_Create_Args", {"message": "message", "code": "errc"}),
    "XlaApi": ("XLA_FFI_Api", {"version": "api_version", "create_error": "XLA_FFI_Error_Create"}),
    "XlaMetadata": ("XLA_FFI_Metadata", {"version": "api_version", "traits": "traits"}),
    "XlaMetadataExtension": ("XLA_FFI_Metadata_Extension", {"metadata": "metadata"}),
    "XlaBuffer": (
        "XLA_FFI_Buffer",
        {"type": "dtype", "data": "data", "rank": "rank", "dims": "dims"},
    ),
    "XlaScalar": ("XLA_FFI_Scalar", {"type": "dtype", "value": "value"}),
    "XlaArgs": ("XLA_FFI_Args", {"size": "size", "types": "types", "args": "args"}),
    "XlaRets": ("XLA_FFI_Rets", {"size": "size", "types": "types", "rets": "rets"}),
    "XlaAttrs": ("XLA_FFI_Attrs", {"size": "size", "types": "types", "attrs": "attrs"}),
    "XlaCallFrame": (
        "XLA_FFI_CallFrame",
        {
            "extension": "extension_start",
            "api": "api",
            "stage": "stage",
            "args": "args",
            "rets": "rets",
            "attrs": "attrs",
        },
    ),
}
NUMBERS = {
    "XLA_MAJOR": "XLA_FFI_API_MAJOR",
    "XLA_METADATA": "XLA_FFI_Extension_Metadata",
    "XLA_S64": "XLA_FFI_DataType_S64",
    "XLA_F32": "XLA_FFI_DataType_F32",
    "XLA_F64": "XLA_FFI_DataType_F64",
    "XLA_SCALAR": "XLA_FFI_AttrType_SCALAR",
    "XLA_EXECUTE": "XLA_FFI_ExecutionStage_EXECUTE",
    "XLA_INTERNAL": "XLA_FFI_Error_Code_INTERNAL",
}


def test_fields_are_where_jax_has_them(tmp_path):
    ffi = pytest.importorskip("jax.ffi", reason="JAX is not installed: pip install rbda_ros[jax]")
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    places = [
        (f"offsetof({ours}, {field})", f"offsetof(struct {theirs}, {name})")
        for ours, (theirs, fields) in RECORDS.items()
        for field, name in fields.items()
    ]
    checks = "\n".join(
        f'_Static_assert({ours} == {theirs}, "{ours}");'
        for ours, theirs in [*places, *NUMBERS.items()]
    )
    source = tmp_path / "check.c"
    source.write_text(
        f'#include "{OURS}"\n#include "xla/ffi/api/c_api.h"\n{checks}\nint main(void)'
        " { return 0; }\n"
    )
    command = ["cc", "-std=c11", "-fsyntax-only", f"-I{ffi.include_dir()}", str(source)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_every_record_is_compared():
    declared = re.findall(r"}\s*(Xla\w+);", OURS.read_text())
    assert set(declared) == set(RECORDS)

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from stages.engine.arrays import arrow_array, numpy_array


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint64", "float32"])
def test_arrays_are_what_pyarrow_makes_of_them(dtype: str) -> None:
    values = np.arange(11).astype(dtype)
    missing = values % 3 == 1
    assert arrow_array(values).equals(pa.array(values))
    assert arrow_array(values[::2]).equals(pa.array(values[::2]))
    assert arrow_array(values, missing).equals(pa.array(values, mask=missing))
    assert arrow_array(values[:0], missing[:0]).equals(pa.array(values[:0]))
    assert (numpy_array(pa.array(values).slice(3)) == values[3:]).all()
    with pytest.raises(ValueError, match=r"\b4\b"):
        numpy_array(arrow_array(values, missing))


def test_pandas_is_not_looked_for() -> None:
    """The reason why this module is there: the same through pyarrow's own calls imports it."""
    code = (
        "import sys, builtins; asked = []; real = builtins.__import__\n"
        "def spy(name, *args, **more):\n"
        "    asked.append(name.split('.')[0]); return real(name, *args, **more)\n"
        "builtins.__import__ = spy\n"
        "import numpy as np, pyarrow as pa\n"
        "from stages.engine.arrays import arrow_array, numpy_array\n"
        "asked.clear(); numpy_array(arrow_array(np.arange(5), np.arange(5) > 9))\n"
        "assert 'pandas' not in asked, asked\n"
        "pa.array(np.arange(5)); assert 'pandas' in asked"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

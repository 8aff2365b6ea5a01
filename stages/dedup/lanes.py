"""Eight and sixty-four bytes at once: what numba has no words for, as single machine operations.

Each is one or a few LLVM instructions that exist on every processor numba compiles for (LLVM splits
what is too wide). None checks bounds: the caller answers for the bytes. Eight bytes have the first
one lowest, as on all machines that numba supports.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

_WORD = ir.IntType(64)
_DOUBLE = ir.IntType(128)
_BLOCK = ir.VectorType(ir.IntType(8), 64)


def _pointer(context: Any, builder: Any, array_type: Any, arguments: Any, target: Any) -> Any:
    """The address of element `arguments[1]` of a contiguous array, as a pointer to `target`."""
    array = context.make_array(array_type)(context, builder, arguments[0])
    return builder.bitcast(builder.gep(array.data, [arguments[1]]), target.as_pointer())


def _all(byte: int) -> Any:
    return ir.Constant(_BLOCK, [byte] * 64)


def _load_eight(typing: Any, data: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], arguments, _WORD)
        return builder.load(pointer, align=1)

    return types.uint64(data, types.int64), generate


def _store_eight(typing: Any, data: Any, place: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], arguments, _WORD)
        builder.store(arguments[2], pointer, align=1)
        return context.get_dummy_value()

    return types.void(data, types.int64, types.uint64), generate


def _word_bits(typing: Any, data: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], arguments, _BLOCK)
        block = builder.load(pointer, align=1)
        small = builder.or_(block, _all(0x20))
        letters = builder.icmp_unsigned("<", builder.sub(small, _all(ord("a"))), _all(26))
        digits = builder.icmp_unsigned("<", builder.sub(block, _all(ord("0"))), _all(10))
        beyond = builder.icmp_unsigned(">=", block, _all(0x80))
        return builder.bitcast(builder.or_(builder.or_(letters, digits), beyond), _WORD)

    return types.uint64(data, types.int64), generate


def _unspaced_bits(typing: Any, data: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], arguments, _BLOCK)
        block = builder.load(pointer, align=1)
        return builder.bitcast(builder.icmp_unsigned("!=", block, _all(ord(" "))), _WORD)

    return types.uint64(data, types.int64), generate


def _lowest_bit(typing: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


def _multiply_halves(typing: Any, left: Any, right: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        product = builder.mul(*(builder.zext(argument, _DOUBLE) for argument in arguments))
        upper = builder.lshr(product, ir.Constant(_DOUBLE, 64))
        return builder.xor(builder.trunc(product, _WORD), builder.trunc(upper, _WORD))

    return types.uint64(types.uint64, types.uint64), generate


def _compiled_only(generator: Callable[..., Any]) -> Any:
    return intrinsic(generator)


load_eight: Callable[[Bytes, int], np.uint64] = _compiled_only(_load_eight)
"""The eight bytes of `data` from a place on, as one number."""

store_eight: Callable[[Bytes, int, np.uint64], None] = _compiled_only(_store_eight)
"""Write a number over the eight bytes of `data` from a place on."""

word_bits: Callable[[Bytes, int], np.uint64] = _compiled_only(_word_bits)
"""Bit k: whether the k-th byte from a place on is an ASCII letter or digit, or beyond ASCII."""

unspaced_bits: Callable[[Bytes, int], np.uint64] = _compiled_only(_unspaced_bits)
"""Bit k: whether the k-th byte from a place on is another than the space."""

lowest_bit: Callable[[np.uint64], int] = _compiled_only(_lowest_bit)
"""Place of the lowest bit that is set in a number; 64 where none is."""

multiply_halves: Callable[[np.uint64, np.uint64], np.uint64] = _compiled_only(_multiply_halves)
"""Upper half XOR lower half of the 128-bit product."""

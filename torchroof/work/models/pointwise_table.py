"""The table of pointwise ops; `pointwise` has the counting rules and turns it into models."""

from __future__ import annotations

from dataclasses import dataclass

from torchroof.work.registry import OnComplex


@dataclass(frozen=True, slots=True)
class Row:
    """One op and its in-place form.

    ``operands`` has a letter per operand in schema order: T a tensor, E a tensor or a number, O either or
    nothing, ``.`` anything that moves no bytes. Small letters are read but do not decide the result's type.
    ``result`` is ``same`` (the promoted type), ``float`` (integers become float32), ``bool`` or ``real``
    (complex becomes real). ``extra`` names the types of further results of the same shape ("" for the same).
    """

    op: str
    operands: str
    flops: int
    words: str
    result: str = "same"
    in_place: bool = True
    extra: tuple[str, ...] = ()


def _each(names: str, operands: str, flops: int, words: str, result: str = "same") -> tuple[Row, ...]:
    return tuple(Row(name, operands, flops, words, result) for name in names.split())


def _backward(op: str, operands: str, flops: int, words: str, extra: tuple[str, ...] = ()) -> Row:
    return Row(op, operands, flops, words, in_place=False, extra=extra)


_ELEMENTARY = (
    "sqrt rsqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan "
    "sinh cosh tanh asinh acosh atanh erf erfc erfinv reciprocal lgamma digamma"
)

ARITHMETIC = (
    *_each("add sub", "TE.", 1, "one addition or subtraction; alpha counts 0"),
    Row("rsub", "TE.", 1, "one subtraction; alpha counts 0", in_place=False),
    *_each("mul", "TE", 1, "one product"),
    *_each("div", "TE", 1, "one division", "float"),
    *_each("neg", "T", 1, "one change of sign"),
    *_each("square", "T", 1, "one product"),
    *_each("pow", "EE", 1, "one power"),
    *_each("fmod remainder floor_divide", "EE", 1, "one division with remainder"),
    *_each("atan2", "TT", 1, "one arc tangent", "float"),
    *_each("hypot", "TT", 4, "two squares, a sum, a root"),
    Row("logaddexp", "TT", 4, "difference, exp, log1p, sum", "same", False),
    *_each("xlogy", "EE", 2, "log and product", "float"),
    *_each("lerp", "TTe", 3, "difference, product, sum"),
    *_each("addcmul", "TTT.", 2, "product and sum; value counts 0"),
    *_each("addcdiv", "TTT.", 2, "division and sum; value counts 0"),
    *_each(_ELEMENTARY, "T", 1, "one elementary function", "float"),
    *_each("logit", "T.", 3, "difference, division, log", "float"),
    *_each("nan_to_num", "T...", 0, "a selection"),
)

SELECTION = (
    *_each("abs", "T", 0, "an absolute value", "real"),
    *_each("sign sgn floor ceil trunc frac", "T", 0, "rounding or sign"),
    Row("round", "T.", 0, "rounding to decimals"),
    *_each("clamp", "TOO", 0, "comparisons"),
    *_each("clamp_min clamp_max", "TE", 0, "a comparison"),
    *(Row(op, "TT", 0, "a comparison", in_place=False) for op in ("maximum", "minimum", "fmax", "fmin")),
    Row("where", "tEE", 0, "a selection", in_place=False),
    Row("_s_where", "tEE", 0, "a selection", in_place=False),
    *_each("masked_fill", "Tte", 0, "a selection"),
    *_each("eq ne lt le gt ge", "TE", 0, "a comparison", "bool"),
    *_each("logical_and logical_or logical_xor", "TT", 0, "logic", "bool"),
    *_each("logical_not", "T", 0, "logic", "bool"),
    *_each("bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift", "EE", 0, "bits"),
    *_each("bitwise_not", "T", 0, "bits"),
    *(
        Row(op, "T", 0, "a test", "bool", False)
        for op in ("isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit")
    ),
)

ACTIVATIONS = (
    *_each("sigmoid", "T", 4, "negation, exp, sum, division", "float"),
    *_each("relu relu6", "T", 0, "comparisons"),
    *_each("hardtanh threshold", "T..", 0, "comparisons"),
    *_each("leaky_relu", "T.", 1, "one product"),
    *_each("elu", "T...", 3, "exp, difference, product; scales count 0"),
    *_each("selu", "T", 4, "exp, difference, two products"),
    *_each("celu", "T.", 4, "division, exp, difference, product"),
    *_each("gelu", "T.", 5, "the erf form: scaling, erf, sum, two products (also for tanh)"),
    *_each("silu", "T", 5, "a sigmoid (4) and a product"),
    *_each("mish", "T", 4, "exp, log1p, tanh, product"),
    Row("softplus", "T..", 4, "scaling, exp, log1p, scaling back", in_place=False),
    *_each("hardswish", "T", 3, "sum, product, division"),
    *_each("hardsigmoid", "T", 2, "sum, division"),
    Row("log_sigmoid", "T", 4, "negation, exp, log1p, difference", in_place=False),
    Row("log_sigmoid_forward", "T", 4, "negation, exp, log1p, difference", in_place=False),
    Row("_prelu_kernel", "TT", 1, "one product", in_place=False),
    Row("softshrink", "T.", 1, "one difference", in_place=False),
    Row("hardshrink", "T.", 0, "a selection", in_place=False),
)

BACKWARD = (
    _backward("threshold_backward", "TT.", 0, "a selection"),
    _backward("hardtanh_backward", "TT..", 0, "a selection"),
    _backward("softshrink_backward", "TT.", 0, "a selection"),
    _backward("hardshrink_backward", "TT.", 0, "a selection"),
    _backward("leaky_relu_backward", "TT..", 1, "one product"),
    _backward("elu_backward", "T....T", 3, "exp and two products; scales count 0"),
    _backward("gelu_backward", "TT.", 11, "cdf 4, pdf 4, their sum with x 2, the gradient 1 (the erf form)"),
    _backward("silu_backward", "TT", 9, "a sigmoid (4), two differences or sums, three products"),
    _backward("mish_backward", "TT", 11, "exp, log1p, tanh, sigmoid from exp 2, six of products and sums"),
    _backward("sigmoid_backward", "TT", 3, "difference and two products"),
    _backward("tanh_backward", "TT", 3, "square, difference, product"),
    _backward("logit_backward", "TT.", 3, "difference, product, division"),
    _backward("softplus_backward", "TT..", 5, "scaling, exp, product, sum, division"),
    _backward("hardswish_backward", "TT", 3, "division, sum, product"),
    _backward("hardsigmoid_backward", "TT", 1, "one division"),
    _backward("log_sigmoid_backward", "TT.", 6, "exp, sum, division, product, difference, product"),
    _backward("_prelu_kernel_backward", "TTT", 2, "one product for each of the two gradients", ("",)),
)

DROPOUT = (
    _backward("native_dropout", "T..", 2, "mask and scale", ("bool",)),
    _backward("_fused_dropout", "T..", 2, "mask and scale", ("uint8",)),
    _backward("native_dropout_backward", "Tt.", 2, "mask and scale"),
    _backward("_masked_scale", "Tt.", 2, "mask and scale"),
    Row("bernoulli", "To.", 0, "random numbers", in_place=False),
)

ROWS: tuple[Row, ...] = (*ARITHMETIC, *SELECTION, *ACTIVATIONS, *BACKWARD, *DROPOUT)


def on_complex(op: str) -> OnComplex:
    """Magnitudes of complex numbers take squares and a root, which nobody counts."""
    return OnComplex.HIDDEN if op in ("abs", "sgn", "sign") else OnComplex.UNKNOWN

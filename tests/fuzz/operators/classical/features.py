"""Columns that are scaled, normalised, chosen, encoded."""

import math

from ...generate.builder import FLOATS, ML, Builder, Value


def _table(b: Builder, op: str, low: int = 1) -> str:
    """Rows of columns, or a vector."""
    return b.source(b.types(op, domain=ML), low=low, high=2, check=lambda s: min(s) > 0)


def _some(b: Builder, count: int, low: float = -2, high: float = 2) -> list[float]:
    return [float(v) for v in b.numbers("float32", [count], low, high)]


def _columns(b: Builder, x: str) -> int:
    return b.of(x)[-1]


def scaler(b: Builder):
    x = _table(b, "Scaler")
    counts = [b.pick([1, _columns(b, x)])] * 2
    offset, scale = (_some(b, count) for count in counts)
    return b.add("Scaler", [x], domain=ML, told=[Value("float32", b.of(x))], offset=offset, scale=scale)


def normalizer(b: Builder):
    x = _table(b, "Normalizer")
    return b.add("Normalizer", [x], domain=ML, told=[Value("float32", b.of(x))], norm=b.pick(["L1", "L2"]))


def binarizer(b: Builder):
    return b.add("Binarizer", [_table(b, "Binarizer")], domain=ML, threshold=b.pick([None, 0.5, 1.0]))


def imputer(b: Builder):
    x = b.source(["float32", "int64"], low=2, high=2, check=lambda s: min(s) > 0)
    count = b.pick([1, _columns(b, x)])
    if b.values[x].dtype in FLOATS:
        missing = b.pick([math.nan, 1.0])
        how = {"imputed_value_floats": _some(b, count), "replaced_value_float": missing}
    else:
        numbers = b.numbers("int64", [count]).tolist()
        how = {"imputed_value_int64s": numbers, "replaced_value_int64": b.integer(-1, 1)}
    return b.add("Imputer", [x], domain=ML, told=[b.values[x]], **how)


def chosen_columns(b: Builder):
    x = _table(b, "ArrayFeatureExtractor")
    columns = b.numbers("int64", [b.integer(1, 4)], 0, _columns(b, x) - 1)
    return b.add("ArrayFeatureExtractor", [x, b.pick([b.constant, b.input])(columns)], domain=ML)


def joined_tables(b: Builder):
    x = b.source(["float32", "int64", "int32", "float64"], low=2, high=2, check=lambda s: min(s) > 0)
    rows, columns = b.of(x)
    more = b.integer(1, 3)
    other = b.parameter(b.values[x].dtype, [rows, more])
    told = [Value("float32", (rows, columns + more))]
    return b.add("FeatureVectorizer", [x, other], domain=ML, told=told, inputdimensions=[columns, more])


def label_encoder(b: Builder):
    x = b.source(["int64", "float32"], low=1, high=3, check=lambda s: min(s) > 0)
    count = b.integer(1, 4)
    keys, kind = list(range(-1, count - 1)), "int64s"
    if b.values[x].dtype == "float32":
        (x,) = b.add("Round", [x]) if b.opset >= 11 else b.add("Floor", [x])
        keys, kind = [float(k) for k in keys], "floats"
    values, default = _some(b, count), {"default_float": b.pick([None, 0.5])}
    if b.chance(0.5):
        values, default = b.numbers("int64", [count]).tolist(), {"default_int64": b.pick([None, 7])}
    named = {f"keys_{kind}": keys, f"values_{'floats' if 'default_float' in default else 'int64s'}": values}
    return b.add("LabelEncoder", [x], domain=ML, **named, **default)


def one_hot_encoder(b: Builder):
    x = b.source(["int64", "float32", "int32", "float64"], low=1, high=2, check=lambda s: min(s) > 0)
    if b.values[x].dtype in FLOATS:
        (x,) = b.add("Floor", [x])
    return b.add("OneHotEncoder", [x], domain=ML, cats_int64s=list(range(-1, b.integer(1, 3))), zeros=1)


TABLE = {
    "Scaler": scaler,
    "Normalizer": normalizer,
    "Binarizer": binarizer,
    "Imputer": imputer,
    "ArrayFeatureExtractor": chosen_columns,
    "FeatureVectorizer": joined_tables,
    "LabelEncoder": label_encoder,
    "OneHotEncoder": one_hot_encoder,
}

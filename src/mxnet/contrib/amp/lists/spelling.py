"""How the names in the lists are put together: most operators are known under several, by a rule."""


def prefixed(prefixes, names):
    """Each of the space-separated `names` behind each of the space-separated `prefixes`; ``.`` stands for no prefix."""
    return [("" if prefix == "." else prefix) + name for prefix in prefixes.split() for name in names.split()]


def with_scalar(names):
    """Operators of an array and a number, in both spellings: ``not_equal`` gives ``_not_equal_scalar`` and ``_NotEqualScalar``."""
    spellings = []
    for name in names.split():
        # The operand's side is part of the first word: `rminus` is `_RMinusScalar`.
        reflected = name.startswith("r")
        words = (name[1:] if reflected else name).split("_")
        spellings += [f"_{name}_scalar", "_" + "R" * reflected + "".join(map(str.capitalize, words)) + "Scalar"]
    return spellings


def of_two_arrays(names):
    """Operators of two arrays of one shape, in both spellings: ``not_equal`` gives ``_not_equal`` and ``_Not_Equal``."""
    return [spelling for name in names.split() for spelling in (f"_{name}", "_" + "_".join(map(str.capitalize, name.split("_"))))]

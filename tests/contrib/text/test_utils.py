import collections

from mxnet.contrib.text import utils


def test_count_tokens():
    counts = utils.count_tokens_from_str(" Life is great ! \n life is good . \n", to_lower=True)
    assert counts == {"life": 2, "is": 2, "great": 1, "!": 1, "good": 1, ".": 1}
    assert utils.count_tokens_from_str("*x*y*\n*x*", r"\*", counter_to_update=collections.Counter(x=1)) == {"x": 3, "y": 1}


def test_other_delimiters_and_nothing_to_count():
    assert utils.count_tokens_from_str("a|b;a", r"\|", ";") == {"a": 2, "b": 1}
    assert utils.count_tokens_from_str("  \n ") == {} and utils.count_tokens_from_str("The the") == {"The": 1, "the": 1}


def test_counts_are_added_to_a_counter():
    counter = collections.Counter(a=5)
    assert utils.count_tokens_from_str("a b", counter_to_update=counter) is counter and counter == {"a": 6, "b": 1}

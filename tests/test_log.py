import logging
import re

import pytest

import mxnet as mx


def test_console(capsys):
    logger = mx.log.get_logger("mxnet.test.console", level=mx.log.INFO)
    logger.info("hello %d", 3)
    logger.debug("not this")
    text = capsys.readouterr().err
    assert re.fullmatch(r"\x1b\[32mI\d{4} \d\d:\d\d:\d\d \d+ .*test_log.py:test_console:\d+\]\x1b\[0m hello 3\n", text)
    assert mx.log.get_logger("mxnet.test.console") is logger and len(logger.handlers) == 1


@pytest.mark.parametrize("level, start", [(mx.log.DEBUG, "\x1b[34mD"), (mx.log.WARNING, "\x1b[31mW"), (mx.log.ERROR, "\x1b[31mE"),
                                          (mx.log.CRITICAL, "\x1b[31mC"), (15, "\x1b[34mU")])
def test_labels(level, start):
    record = logging.LogRecord("x", level, "file.py", 1, "text", (), None)
    assert mx.log._Formatter().format(record).startswith(start)


def test_file(tmp_path):
    path = tmp_path / "x.log"
    logger = mx.log.get_logger("mxnet.test.file", str(path), "w", mx.log.DEBUG)
    logger.debug("plain")
    assert path.read_text() == "plain\n"
    logger.handlers[0].close()


def test_old_name():
    with pytest.warns(DeprecationWarning, match="the old name of get_logger"):
        assert mx.log.getLogger("mxnet.test.console") is logging.getLogger("mxnet.test.console")

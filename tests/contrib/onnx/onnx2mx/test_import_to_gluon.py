import numpy as np
import onnx

import mxnet as mx
from onnx_import_checks import model_of, node


def test_a_file_becomes_a_block(tmp_path):
    weight = np.float32([[1, 2], [3, 4]])
    onnx.save(model_of([node("MatMul", "x w", "a"), node("Add", "a z")], {"x": ("n", 2), "z": ("n", 2)}, {"w": weight}), tmp_path / "a.onnx")
    block = mx.contrib.onnx.import_to_gluon(str(tmp_path / "a.onnx"), ctx=mx.cpu())
    assert isinstance(block, mx.gluon.SymbolBlock)
    for hybridized in (False, True):
        block.hybridize(hybridized)
        assert block(mx.nd.ones((3, 2)), mx.nd.zeros((3, 2))).asnumpy().tolist() == [[4, 6]] * 3
    block.export(str(tmp_path / "b"))
    again = mx.gluon.SymbolBlock.imports(str(tmp_path / "b-symbol.json"), ["x", "z"], str(tmp_path / "b-0000.params"))
    assert again(mx.nd.ones((1, 2)), mx.nd.ones((1, 2))).asnumpy().tolist() == [[5, 7]]

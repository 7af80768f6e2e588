import mxnet as mx


def test_shapes_of_outputs_by_name():
    pair = mx.sym.split(mx.sym.var("x"), num_outputs=2, name="s")
    assert mx.symbol_doc.SymbolDoc.get_output_shape(pair, x=(1, 4, 3)) == {"s_output0": (1, 2, 3), "s_output1": (1, 2, 3)}

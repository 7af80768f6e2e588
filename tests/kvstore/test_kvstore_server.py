import pytest

import mxnet as mx


@pytest.mark.parametrize("kind", ["local", "teststore"])
def test_stores_of_one_process_have_no_server(kind):
    server = mx.kv.KVStoreServer(mx.kv.create(kind))
    with pytest.raises(mx.MXNetError, match=f"'{kind}' lives in one process"):
        server.run()

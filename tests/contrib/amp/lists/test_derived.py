from mxnet.contrib.amp.lists import derived
from mxnet.ops import get


def test_names_and_aliases_by_precision():
    low = derived.spellings("float16", "low")
    assert {"Convolution", "FullyConnected"} <= set(low) and not any(n.startswith("_np") for n in low)
    assert all(get(n).precision("float16") == "low" for n in low)
    assert set(derived.spellings("float16", "low", without=("Convolution",), besides=("Mine",))) == set(low) - {"Convolution"} | {"Mine"}


def test_operators_that_depend_on_an_attribute_are_listed_apart():
    found = derived.conditional("float16")
    assert ("Activation", "act_type", ["softrelu"]) in found
    everything = derived.spellings("float16", *{get(n).precision("float16") for n, _, _ in found})
    assert not {n for n, _, _ in found} & set(everything)


def test_losses_have_a_label_and_a_scale():
    found = derived.losses()
    assert {"SoftmaxOutput", "LinearRegressionOutput"} <= set(found) and "MakeLoss" not in found


def test_products_that_mxnet_lists_nowhere_run_in_low_precision():
    names = "selfatt_valatt", "encdec_qk", "encdec_valatt"
    others = {"_contrib_ModulatedDeformableConvolution", "_contrib_RROIAlign", "_contrib_box_decode", "_contrib_box_encode", "_contrib_grid_sample",
              "_contrib_group_norm", "masked_softmax", "masked_log_softmax"}
    windows = {"_contrib_sldwin_atten_score", "_contrib_sldwin_atten_context"}
    assert [(set(products), set(rest)) for products, rest in map(derived.unlisted, ("float16", "bfloat16"))] == [
        (windows, others), (windows | {f"_contrib_interleaved_matmul_{name}" for name in names}, others)]

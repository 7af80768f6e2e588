"""Detection operators on a simulated GPU: values and gradients are those of the CPU's kernels, and the host neither waits nor copies."""
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import autograd, nd
from mxnet.ndarray import dispatch
from mxnet.ops.registry import OPERATORS
from mxnet.ops.spatial import boxes, boxes_on_gpu, on_gpu
from simulated_gpus import Watch, gpus

sys.path.insert(0, str(Path(__file__).parent.parent / "ops"))
from records import RECORDS  # noqa: E402

CASES = 8


class Draw(np.random.RandomState):
    """Random inputs."""

    def size(self, low, high):
        return int(self.randint(low, high + 1))

    def pick(self, *options):
        return options[self.randint(len(options))]

    def maps(self, channels=None):
        """Feature maps; half of them are rectified, so that the largest values of a bin may be equal."""
        values = self.randn(self.size(1, 3), channels or self.size(1, 5), self.size(1, 9), self.size(1, 12))
        return np.maximum(values, 0) if self.rand() < 0.5 else values

    def regions(self, images, scale, least=0):
        """Regions, some of which reach beyond the image, are empty, or the wrong way round."""
        count = self.size(least, 7)
        corners = self.uniform(-8, 16, (count, 4)) / scale
        ordered = np.concatenate([corners[:, :2], corners[:, :2] + abs(corners[:, 2:])], 1)
        corners = np.where(self.rand(count, 1) < 0.8, ordered, corners)
        corners = np.where(self.rand(count, 1) < 0.3, corners.round(), corners)
        return np.concatenate([self.randint(0, images, (count, 1)), corners], 1)

    def boxes(self, *shape, step=0.05):
        """Boxes in a small part of the plane: many overlap, some are equal, empty, or the wrong way round."""
        start = self.uniform(0, 0.7, (*shape, 2))
        return (np.concatenate([start, start + self.uniform(-0.05, 0.4, (*shape, 2))], -1) / step).round() * step

    def scores(self, *shape):
        """Scores, many of them equal."""
        return self.rand(*shape).round(1) if self.rand() < 0.5 else self.rand(*shape)


def roi_pooling(draw):
    scale, maps = draw.pick(1, 0.5, 0.25), draw.maps()
    rois = draw.regions(len(maps), scale)
    rois[:1, 0] = draw.pick(0, -1, 9)  # images that there are not give zeros here
    return [maps, rois], {"pooled_size": (draw.size(1, 5), draw.size(1, 5)), "spatial_scale": scale}


def roi_align(draw):
    scale, size, sensitive = draw.pick(1, 0.5, 0.25), (draw.size(1, 4), draw.size(1, 4)), draw.rand() < 0.5
    maps = draw.maps(size[0] * size[1] * draw.size(1, 3) if sensitive else None)
    rois = draw.regions(len(maps), scale)
    rois[:1, 0] *= draw.pick(1, -1)
    return [maps, rois], {"pooled_size": size, "spatial_scale": scale, "sample_ratio": draw.pick(-1, 1, 2, 5), "position_sensitive": sensitive,
                          "aligned": draw.rand() < 0.5}


def rotated_roi_align(draw):
    scale, maps = draw.pick(1, 0.5, 0.25), draw.maps()
    rois = draw.regions(len(maps), scale, least=1)  # without regions the processor's result has no gradient
    rois = np.concatenate([rois, draw.pick(90.0, 37.5) * draw.randint(-4, 5, (len(rois), 1))], 1)
    return [maps, rois], {"pooled_size": (draw.size(1, 4), draw.size(1, 4)), "spatial_scale": scale, "sampling_ratio": draw.pick(-1, 1, 2, 5)}


def psroi_pooling(draw):
    scale, size, group, dim = draw.pick(1, 0.5), draw.size(1, 4), draw.size(0, 4), draw.size(1, 3)
    maps = draw.maps(dim * (group or size) ** 2 + draw.pick(0, 2))
    return [maps, draw.regions(len(maps), scale)], {"spatial_scale": scale, "output_dim": dim, "pooled_size": size, "group_size": group}


def deformable_psroi_pooling(draw):
    scale, size, group, dim, classes, part = draw.pick(1, 0.5), draw.size(1, 3), draw.size(1, 3), draw.pick(2, 4), draw.size(1, 2), draw.size(0, 2)
    maps = draw.maps(dim * group ** 2)
    inputs = [maps, draw.regions(len(maps), scale)]
    options = {"spatial_scale": scale, "output_dim": dim, "pooled_size": size, "group_size": group, "part_size": part,
               "sample_per_part": draw.size(1, 3), "trans_std": draw.pick(0.1, 0.5)}
    if draw.rand() < 0.3:
        return inputs, {**options, "no_trans": True}
    return [*inputs, draw.randn(len(inputs[1]), 2 * classes, part or size, part or size)], options


def multibox_prior(draw):
    options = {"sizes": tuple(draw.uniform(0.1, 1, draw.size(1, 3))), "ratios": tuple(draw.uniform(0.3, 3, draw.size(1, 3))),
               "clip": draw.rand() < 0.5, "offsets": (draw.rand(), draw.rand())}
    return [draw.maps()], options if draw.rand() < 0.5 else {**options, "steps": (0.1, 0.2)}


def multibox_target(draw):
    images, anchors, count = draw.size(1, 3), draw.size(1, 30), draw.size(1, 6)
    label = np.concatenate([draw.randint(0, 4, (images, count, 1)), draw.boxes(images, count), draw.rand(images, count, draw.pick(0, 1))], -1)
    for i in range(images):
        label[i, draw.size(0, count):] = -1
    options = {"overlap_threshold": draw.pick(-1, 0.3, 0.5), "ignore_label": draw.pick(-1, -7)}
    if draw.rand() < 0.5:
        options.update(negative_mining_ratio=draw.pick(0.5, 3), negative_mining_thresh=1.5, variances=(0.1, 0.2, 0.3, 0.4))
    anchor = draw.boxes(1, anchors)
    anchor[..., 2:] = np.maximum(anchor[..., 2:], anchor[..., :2] + 0.1)
    label[..., 3:5] = np.where(label[..., :1] < 0, -1, np.maximum(label[..., 3:5], label[..., 1:3] + 0.1))
    return [anchor, label, draw.randn(images, 4, anchors).round(draw.pick(0, 3))], options


def multibox_detection(draw):
    images, anchors, classes = draw.size(1, 3), draw.size(1, 40), draw.size(1, 4)
    return [draw.scores(images, classes + 1, anchors), draw.randn(images, 4 * anchors) * draw.pick(0, 0.5), draw.boxes(1, anchors)], {
        "threshold": draw.pick(0.01, 0.5, 0.95), "nms_threshold": draw.pick(0.2, 0.5, 1, -1), "nms_topk": draw.pick(-1, 5, 100),
        "force_suppress": draw.rand() < 0.5, "clip": draw.rand() < 0.5}


def proposal(draw, images=1):
    height, width, count = draw.size(2, 5), draw.size(2, 5), draw.size(1, 2)
    info = np.stack([draw.randint(16, 16 * height + 1, images), draw.randint(16, 16 * width + 1, images), draw.pick(0.5, 1) * np.ones(images)], 1)
    return [draw.scores(images, 4 * count, height, width), draw.randn(images, 8 * count, height, width) * 0.3, info], {
        "scales": (2, 4), "ratios": (0.5, 1)[:count], "rpn_pre_nms_top_n": draw.pick(-1, 10, 1000), "rpn_post_nms_top_n": draw.size(0, 30),
        "threshold": draw.pick(0.3, 0.7), "rpn_min_size": draw.pick(1, 16, 40), "output_score": draw.rand() < 0.7, "iou_loss": draw.rand() < 0.3}


def multi_proposal(draw):
    return proposal(draw, draw.size(1, 3))


def box_nms(draw):
    shape = draw.pick((draw.size(1, 40),), (draw.size(1, 3), draw.size(1, 40)), (2, 2, draw.size(1, 20)))
    data = np.concatenate([draw.randint(-1, 3, (*shape, 1)), draw.scores(*shape, 1), draw.boxes(*shape), draw.rand(*shape, draw.pick(0, 1))], -1)
    options = {"overlap_thresh": draw.pick(0.1, 0.5, 1), "valid_thresh": draw.pick(0, 0.5), "topk": draw.pick(-1, 0, 5, 100),
               "force_suppress": draw.rand() < 0.5, "in_format": draw.pick("corner", "center"), "out_format": draw.pick("corner", "center")}
    return [data], options if draw.rand() < 0.4 else {**options, "id_index": 0, "background_id": draw.pick(-1, 1)}


def bipartite_matching(draw):
    shape = draw.pick((), (2,), (2, 2)) + (draw.size(1, 6), draw.size(1, 6))
    return [draw.scores(*shape)], {"threshold": draw.pick(0.05, 0.5), "is_ascend": draw.rand() < 0.5, "topk": draw.pick(-1, 1, 3)}


def correlation(draw):
    data = draw.randn(2, draw.size(1, 2), draw.size(1, 3), draw.size(4, 8), draw.size(4, 8)).round(draw.pick(0, 3))
    return [*data], {"kernel_size": draw.pick(1, 3), "max_displacement": draw.size(0, 4), "stride1": draw.size(1, 2), "stride2": draw.size(1, 3),
                     "pad_size": 5, "is_multiply": draw.rand() < 0.5}


def deformable_convolution(draw, modulated=False):
    n, group, offsets, kernel = draw.size(1, 3), draw.size(1, 2), draw.size(1, 2), (draw.size(1, 3), draw.size(1, 3))
    options = {"kernel": kernel, "stride": (draw.size(1, 2), draw.size(1, 2)), "dilate": (1, draw.size(1, 2)), "pad": (draw.size(0, 2), 1),
               "num_filter": 4, "num_group": group, "num_deformable_group": offsets, "no_bias": draw.rand() < 0.5}
    data = draw.randn(n, 4, draw.size(5, 7), draw.size(5, 7))
    rows, columns = ((size + 2 * p - (k - 1) * d - 1) // s + 1
                     for size, k, s, d, p in zip(data.shape[2:], kernel, options["stride"], options["dilate"], options["pad"]))
    taps = kernel[0] * kernel[1] * offsets
    inputs = [data, draw.randn(n, 2 * taps, rows, columns) * draw.pick(0, 1, 4)]
    inputs += [draw.rand(n, taps, rows, columns)] if modulated else []
    inputs += [draw.randn(4, 4 // group, *kernel)] + ([] if options["no_bias"] else [draw.randn(4)])
    return inputs, options


def modulated_deformable_convolution(draw):
    return deformable_convolution(draw, True)


def spatial_transformer(draw):
    maps = draw.maps()
    return [maps, draw.randn(len(maps), 6)], {"target_shape": (draw.size(1, 4), draw.size(1, 4)), "transform_type": "affine",
                                              "sampler_type": "bilinear"}


def bilinear_sampler(draw):
    maps = draw.maps()
    return [maps, draw.randn(len(maps), 2, draw.size(1, 4), draw.size(1, 4))], {}


def grid_generator(draw):
    if draw.rand() < 0.5:
        return [draw.randn(2, 6)], {"transform_type": "affine", "target_shape": (draw.size(1, 4), draw.size(1, 4))}
    return [draw.randn(2, 2, draw.size(2, 4), draw.size(2, 4))], {"transform_type": "warp"}


MAKERS = {"ROIPooling": roi_pooling, "_contrib_ROIAlign": roi_align, "_contrib_RROIAlign": rotated_roi_align,
          "_contrib_PSROIPooling": psroi_pooling, "_contrib_DeformablePSROIPooling": deformable_psroi_pooling,
          "_contrib_MultiBoxPrior": multibox_prior, "_contrib_MultiBoxTarget": multibox_target, "_contrib_MultiBoxDetection": multibox_detection,
          "_contrib_Proposal": proposal, "_contrib_MultiProposal": multi_proposal, "_contrib_box_nms": box_nms,
          "_contrib_bipartite_matching": bipartite_matching, "Correlation": correlation, "_contrib_DeformableConvolution": deformable_convolution,
          "_contrib_ModulatedDeformableConvolution": modulated_deformable_convolution, "SpatialTransformer": spatial_transformer,
          "BilinearSampler": bilinear_sampler, "GridGenerator": grid_generator}


def cases(name):
    """(inputs, attributes) of the operator's records, then random ones."""
    yield from ((sample.inputs, sample.attributes) for sample in RECORDS[name])
    yield from (MAKERS[name](Draw(seed)) for seed in range(CASES))


def run(name, inputs, attributes, ctx):
    """Return the outputs and the gradients of an operator, and what made the host wait."""
    arrays = [nd.array(np.asarray(a, "float32"), dtype="float32", ctx=ctx) if np.size(a) else nd.zeros(np.shape(a), ctx=ctx) for a in inputs]
    for array in arrays:
        array.attach_grad()
    with Watch() as watch:
        with autograd.record():
            outputs = dispatch.invoke(OPERATORS[name], arrays, dict(attributes))
    outputs = outputs if isinstance(outputs, list) else [outputs]
    assert all(o.context == ctx for o in outputs)
    heads = [o for o in outputs if o._data.requires_grad]
    if heads:
        seeds = [nd.array(np.linspace(-1, 1, o.size).reshape(o.shape), ctx=ctx) if o.size else nd.zeros(o.shape, ctx=ctx) for o in heads]
        with watch:
            autograd.backward(heads, seeds)
    return [a.asnumpy() for a in [*outputs, *([a.grad for a in arrays] if heads else [])]], watch.waits + watch.copies


@pytest.fixture
def gpu():
    with gpus() as (first, _), mx.util.np_shape(True):
        yield first


@pytest.mark.parametrize("chunk", [None, 1], ids=["", "chunks"])
@pytest.mark.parametrize("name", MAKERS)
def test_a_gpu_computes_what_the_processor_does(gpu, monkeypatch, name, chunk):
    if chunk:  # smallest parts, which large inputs would need
        monkeypatch.setattr(on_gpu, "CHUNK_BYTES", chunk)
    for number, (inputs, attributes) in enumerate(cases(name)):
        if chunk and number % 8:
            continue
        expected, _ = run(name, inputs, attributes, mx.cpu())
        received, waits = run(name, inputs, attributes, gpu)
        assert not waits, (number, waits)
        assert len(received) == len(expected)
        for a, b in zip(received, expected):
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5, err_msg=f"case {number}: {attributes}")


@pytest.mark.parametrize("name", ["_contrib_ROIAlign", "_contrib_RROIAlign", "_contrib_PSROIPooling", "_contrib_DeformablePSROIPooling"])
def test_regions_of_images_that_do_not_exist_give_zeros(gpu, name):
    inputs, attributes = next((i, a) for i, a in cases(name) if len(i[1]) > 2)
    regions = np.array(inputs[1])
    regions[1, 0], regions[2] = 7, np.nan
    received, waits = run(name, [inputs[0], regions, *inputs[2:]], attributes, gpu)
    expected, _ = run(name, inputs, attributes, mx.cpu())
    np.testing.assert_allclose(received[0][0], expected[0][0], rtol=1e-4, atol=1e-5)
    assert not received[0][1].any() and not waits


@pytest.mark.parametrize("block", [8, 32, 512])
@pytest.mark.parametrize("options", [{}, {"inclusive": True}, {"border": 1}, {"limit": 9}, {"classes": 3}])
def test_greedy_suppression_takes_several_blocks(monkeypatch, block, options):
    monkeypatch.setattr(boxes_on_gpu, "_BLOCK", block)
    draw, options = Draw(1), dict(options)
    kinds = options.pop("classes", 0)
    for count in (1, 8, 77, 300):
        corners = draw.boxes(2, count, step=0.1).astype("float32") * 10
        # A staircase: each box overlaps the next, so that every decision hangs on the one before it.
        corners[1] = np.arange(count).reshape(-1, 1) + np.float32([0, 0, 3, 3])
        classes = draw.randint(0, kinds, (2, count)) if kinds else None
        stays = boxes_on_gpu.greedy_suppression(torch.tensor(corners), torch.ones(2, count, dtype=torch.bool), 0.25,
                                                None if classes is None else torch.tensor(classes), **options)
        for i in range(2):
            expected = boxes.greedy_suppression(corners[i], 0.25, None if classes is None else classes[i], **options)
            np.testing.assert_array_equal(stays[i].numpy(), expected)

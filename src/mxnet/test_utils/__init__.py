"""Tools for testing: comparison of arrays, checks of gradients, random inputs, tests of random generators.

MXNet's own tests and many client libraries begin with ``from mxnet.test_utils import *``; they expect ``mx``, ``np`` and the other modules
below among the names.

``compare``
    Tolerances and assertions about arrays.
``arrays``
    Random and special arrays, dense and sparse.
``checks``
    Gradients and results of Symbols, optimizers and blocks.
``generators``
    Statistical tests of random generators.
``data``
    Downloads and standard data sets.
``system``
    Devices, environment variables, streams.
"""
import json
import logging
import os
import sys
import time
from collections import OrderedDict
from contextlib import contextmanager

import numpy as np
import numpy.random as rnd
import numpy.testing as npt

import mxnet as mx

from ..context import Context, current_context
from ..ndarray import array
from ..runtime import Features
from ..symbol import Symbol
from ..util import get_cuda_compute_capability, getenv, setenv, use_np
from .arrays import (
    assign_each,
    assign_each2,
    collapse_sum_like,
    create_2d_tensor,
    create_sparse_array,
    create_sparse_array_zd,
    create_vector,
    get_identity_mat,
    get_identity_mat_batch,
    new_matrix_with_real_eigvals_2d,
    new_matrix_with_real_eigvals_nd,
    new_orthonormal_matrix_2d,
    new_sym_matrix_with_real_eigvals_2d,
    new_sym_matrix_with_real_eigvals_nd,
    np_reduce,
    rand_coord_2d,
    rand_ndarray,
    rand_shape_2d,
    rand_shape_3d,
    rand_shape_nd,
    rand_sparse_ndarray,
    random_arrays,
    random_sample,
    random_uniform_arrays,
    shuffle_csr_column_indices,
)
from .checks import (
    check_consistency,
    check_gluon_hybridize_consistency,
    check_numeric_gradient,
    check_speed,
    check_symbolic_backward,
    check_symbolic_forward,
    numeric_grad,
    same_symbol_structure,
    simple_forward,
)
from .compare import (
    almost_equal,
    assert_allclose,
    assert_almost_equal,
    assert_almost_equal_ignore_nan,
    assert_almost_equal_with_err,
    assert_exception,
    checkShapes,
    default_atols,
    default_dtype,
    default_numeric_eps,
    default_rtols,
    effective_dtype,
    get_atol,
    get_etol,
    get_rtol,
    get_tolerance,
    get_tols,
    locationError,
    same,
    same_array,
)
from .data import (
    DummyIter,
    download,
    download_model,
    get_bz2_data,
    get_cifar10,
    get_im2rec_path,
    get_mnist,
    get_mnist_iterator,
    get_mnist_pkl,
    get_mnist_ubyte,
    get_zip_data,
)
from .generators import chi_square_check, gen_buckets_probs_with_ppf, mean_check, var_check, verify_generator
from .optimizers import compare_ndarray_tuple, compare_optimizer, compare_optimizer_noise_seeded
from .system import (
    default_context,
    default_device,
    discard_stderr,
    environment,
    has_tvm_ops,
    is_aarch64_run,
    is_cd_run,
    is_op_runnable,
    list_gpus,
    retry,
    set_default_context,
    set_default_device,
)

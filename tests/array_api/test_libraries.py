"""SciPy and scikit-learn compute with ``mx.np`` arrays, through the array API standard."""
import os
import subprocess

import numpy as onp
import pytest

import mxnet as mx
from forked import python

SCIPY = """
import numpy as onp, scipy.special, scipy.stats, scipy.cluster.vq, scipy.integrate
import mxnet as mx
xp = mx.np.array_api
host = onp.random.RandomState(0).rand(6, 4) + 0.5
x = xp.asarray(host)

def same(found, expected):
    assert type(found) is mx.np.ndarray, type(found)
    onp.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-10)

same(scipy.special.logsumexp(x, axis=1), scipy.special.logsumexp(host, axis=1))
same(scipy.special.softmax(x, axis=0), scipy.special.softmax(host, axis=0))
same(scipy.stats.zscore(x, axis=0), scipy.stats.zscore(host, axis=0))
same(scipy.stats.gmean(x, axis=0), scipy.stats.gmean(host, axis=0))
same(scipy.stats.skew(x, axis=1), scipy.stats.skew(host, axis=1))
same(scipy.stats.kurtosis(x, axis=1), scipy.stats.kurtosis(host, axis=1))
same(scipy.stats.ttest_1samp(x, 1.0).statistic, scipy.stats.ttest_1samp(host, 1.0).statistic)
same(scipy.cluster.vq.whiten(x), scipy.cluster.vq.whiten(host))
same(scipy.integrate.trapezoid(x, axis=0), scipy.integrate.trapezoid(host, axis=0))
print('equal')
"""


def test_scipy_s_functions_take_and_return_arrays():
    pytest.importorskip("scipy", minversion="1.15")
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}  # read when SciPy is imported
    done = subprocess.run([*python(), "-W", "ignore", "-c", SCIPY], env=environment, capture_output=True, text=True, timeout=200)
    assert done.stdout == "equal\n", done.stderr[-3000:]


@pytest.fixture
def samples():
    pytest.importorskip("sklearn", minversion="1.6")
    random = onp.random.RandomState(0)
    x = random.randn(60, 5)
    return x, (x[:, 0] + 0.5 * x[:, 1] > 0).astype("int64")


ESTIMATORS = {
    "scaler": lambda: __import__("sklearn.preprocessing").preprocessing.StandardScaler(),
    "range": lambda: __import__("sklearn.preprocessing").preprocessing.MinMaxScaler(),
    "pca": lambda: __import__("sklearn.decomposition").decomposition.PCA(n_components=3, svd_solver="full", whiten=True),
}


@pytest.mark.skipif(os.environ.get("SCIPY_ARRAY_API") != "1", reason="scikit-learn's dispatch needs SCIPY_ARRAY_API=1, set before SciPy is imported")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_scikit_learn_s_transformers(samples, name):
    import sklearn
    host, _ = samples
    expected = ESTIMATORS[name]().fit_transform(host)
    with sklearn.config_context(array_api_dispatch=True):
        found = ESTIMATORS[name]().fit_transform(mx.np.array_api.asarray(host))
    assert type(found) is mx.np.ndarray
    onp.testing.assert_allclose(onp.abs(found.asnumpy()), onp.abs(expected), rtol=1e-7, atol=1e-9)


@pytest.mark.skipif(os.environ.get("SCIPY_ARRAY_API") != "1", reason="scikit-learn's dispatch needs SCIPY_ARRAY_API=1, set before SciPy is imported")
def test_scikit_learn_s_classifiers_and_metrics(samples):
    import sklearn
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.linear_model import Ridge
    from sklearn.metrics import accuracy_score, r2_score
    host, labels = samples
    xp = mx.np.array_api
    expected = LinearDiscriminantAnalysis().fit(host, labels).predict(host)
    ridge = Ridge(solver="svd").fit(host, host[:, 2] * 3 + 1).predict(host)
    with sklearn.config_context(array_api_dispatch=True):
        x, y = xp.asarray(host), xp.asarray(labels)
        found = LinearDiscriminantAnalysis().fit(x, y).predict(x)
        assert type(found) is mx.np.ndarray and found.tolist() == expected.tolist()
        assert accuracy_score(y, found) == accuracy_score(labels, expected) > 0.9
        regression = Ridge(solver="svd").fit(x, x[:, 2] * 3 + 1).predict(x)
        onp.testing.assert_allclose(regression.asnumpy(), ridge, rtol=1e-8)
        assert float(r2_score(x[:, 2] * 3 + 1, regression)) > 0.99


def test_scikit_learn_in_a_process_with_dispatch():
    pytest.importorskip("sklearn", minversion="1.6")
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    if os.environ.get("SCIPY_ARRAY_API") == "1":
        pytest.skip("this is that process")
    done = subprocess.run([*python(), "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", "scikit_learn_s"], env=environment,
                          capture_output=True, text=True, timeout=230)
    assert done.returncode == 0, done.stdout[-3000:]

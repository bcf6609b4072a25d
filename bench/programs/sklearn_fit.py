"""scikit-learn: scaling, polynomial features and a ridge regression over 20,000 rows: arrays of 3 to
35 MiB, made anew in each fit.   sklearn_fit.py --steps 10"""
import os

from meter import Meter, arguments

a = arguments(steps=9, rows=20000, columns=20)
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(a.threads)     # read at import
import numpy as np      # noqa: E402
from sklearn.linear_model import Ridge      # noqa: E402
from sklearn.pipeline import make_pipeline      # noqa: E402
from sklearn.preprocessing import PolynomialFeatures, StandardScaler      # noqa: E402

draw = np.random.default_rng(0)
x = draw.standard_normal((a.rows, a.columns))
y = x[:, 0] * x[:, 1] + draw.standard_normal(a.rows)
m = Meter("sklearn", a)
for _ in m:
    model = make_pipeline(StandardScaler(), PolynomialFeatures(2), Ridge(solver="cholesky"))
    model.fit(x, y).predict(x)
m.report()

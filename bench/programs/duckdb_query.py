"""DuckDB: an aggregation and a sort over two million rows. Half of its page faults are of memory that
does not come from malloc.   duckdb_query.py --steps 9"""
import duckdb
from meter import Meter, arguments

a = arguments(steps=9, rows=2000000)
db = duckdb.connect()
db.execute(f"SET threads TO {a.threads}")
db.execute(f"CREATE TABLE t AS SELECT hash(i) % 50000 AS k, hash(i + 1) / 1e19 AS v "
           f"FROM range({a.rows}) r(i)")
m = Meter("duckdb", a)
for _ in m:
    db.execute("SELECT k, sum(v), avg(v) FROM t GROUP BY k ORDER BY 2 DESC LIMIT 10").fetchall()
    db.execute("SELECT k, v FROM t ORDER BY v LIMIT 10 OFFSET 1000000").fetchall()
m.report()

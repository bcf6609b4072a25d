from pyspark.sql import SparkSession
from worker import work

session = SparkSession.builder.getOrCreate()
print(session.sparkContext.parallelize([1], 1).map(work).collect()[0])
session.stop()

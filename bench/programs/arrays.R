# R: each step centres a matrix, fits a linear model, and aggregates and sorts a data frame. Each
# prints a line, which ends it for faultstat (--step-regex ^step).
#   R --no-echo --vanilla -f bench/programs/arrays.R
set.seed(0)
rows <- 400000
x <- matrix(rnorm(rows * 6), rows)
frame <- data.frame(key = sample.int(2000, rows, TRUE), value = rnorm(rows))
cat("step begins\n"); flush(stdout())
for (i in 1:12) {
    centred <- sweep(x, 2, colMeans(x))
    y <- centred %*% 1:6 + frame$value * i
    fit <- lm.fit(centred, y)
    sums <- rowsum(frame$value * fit$residuals, frame$key)
    ordered <- frame[order(frame$value), ]
    cat("step", i, sum(sums) + ordered$key[1], "\n"); flush(stdout())
}

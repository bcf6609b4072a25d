# Reads what ctest --output-junit wrote; prints what the test named `test` said, without what says
# nothing: cmocka's lines of tests that ran and were right.
/^[ \t]*<testcase / { mine = index($0, " name=\"" test "\" ") > 0 }
/^[ \t]*<system-out>/ { output = 1; sub(/^[ \t]*<system-out>/, "") }
output && mine {
    line = $0
    sub(/<\/system-out>.*/, "", line)
    if (line !~ /^ *\[ (RUN  |      OK|  PASSED) / && line != "") print plain(line)
}
/<\/system-out>/ { output = 0 }

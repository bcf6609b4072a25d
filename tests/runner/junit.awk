# Reads what ctest --output-junit wrote; prints "status<TAB>name<TAB>reason" a test, status being
# one of pass, fail, skip. ctest says "notrun" of a test that skipped and of one it could not start;
# only the first is a skip.
function attribute(line, key,    at) {
    at = index(line, " " key "=\"")
    if (!at) return ""
    line = substr(line, at + length(key) + 3)
    return plain(substr(line, 1, index(line, "\"") - 1))
}
/^[ \t]*<testcase / {
    name = attribute($0, "name"); status = attribute($0, "status"); message = ""; said = ""; output = 0
    next
}
/^[ \t]*<(skipped|failure) / { message = attribute($0, "message") }
/^[ \t]*<system-out>/ { output = 1; sub(/^[ \t]*<system-out>/, "") }
output && said == "" && /^SKIP/ { said = plain($0); sub(/<\/system-out>.*/, "", said) }
/<\/system-out>/ { output = 0 }
/^[ \t]*<\/testcase>/ {
    if (status == "run") result = "pass"
    else if (status == "disabled" || (status == "notrun" && message ~ /^SKIP_/)) result = "skip"
    else result = "fail"
    print result "\t" name "\t" (said != "" ? said : message != "" ? message : status == "disabled" ? "disabled" : result == "fail" ? "see its output" : "no reason given")
}

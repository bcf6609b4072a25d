# Completion of faultless, faultstat and faultplan in fish. Commands and options are what --help of
# the program on the line says, so none is missing here.

# The words that stand before the cursor's, without "--" and what follows: then it is another
# program's line.
function __faultless_words
    for word in (commandline -opc)
        test "$word" = -- && break
        echo $word
    end
end

function __faultless_help
    set -l words (__faultless_words)
    set -l help (command $words[1] --help 2>/dev/null)
    if string match -q '*COMMAND*' -- $help[1]; and test (count $words) -gt 1
        set help (command $words[1] $words[2] --help 2>/dev/null)
    end
    string join \n -- $help
end

function __faultless_candidates
    __faultless_help | awk '
        /^  [a-z]/ { name = $1; sub(/^ *[a-z]+ */, ""); print name "\t" $0 }
        /^  (-., |    )--[a-z]/ {
            long = substr($0, 7); text = long; sub(/ .*/, "", long); sub(/^[^ ]* */, "", text)
            takes = sub(/=.*/, "=", long)
            print long "\t" text
            if (substr($0, 3, 1) == "-") print substr($0, 3, 2) (takes ? "=" : "") "\t" text
        }'
end

# CMD and its arguments, as far as they are typed: what stands behind the options. Nothing: there is
# none yet.
function __faultless_command
    set -l words (__faultless_words)
    set -l help (__faultless_help)
    string match -q '*COMMAND*' -- $help[1]; or not string match -q '* CMD*' -- $help[1]; and return
    set -l takes (__faultless_candidates | string match -rg '^(-.*)=\t')
    set -l line (commandline -opc) (commandline -ct)
    set -e line[1]
    contains -- $words[1] faultless; or set -e line[1]
    while set -q line[2]; and string match -q -- '-*' $line[1]
        test $line[1] = --; and set -e line[1]; and break
        contains -- $line[1] $takes; and set -e line[1]
        set -e line[1]
    end
    string match -q -- '-*' $line[1]; or string join -- ' ' $line
end

function __faultless_is_command
    string length -q -- (__faultless_command)
end

for program in faultless faultstat faultplan
    complete -c $program -n 'not contains -- -- (commandline -opc); and not __faultless_is_command' \
        -a '(__faultless_candidates)'
    complete -c $program -n __faultless_is_command -f -a '(complete -C (__faultless_command))'
end

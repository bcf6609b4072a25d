# Completion of faultless, faultstat and faultplan in bash. Commands, options and what these take
# are what --help of the program on the line says, so none is missing here.

# On stdin --help; each option and the word for its value: "--output FILE", "-o FILE", "--json ".
_faultless_options() {
    awk '/^  (-., |    )--[a-z]/ {
        long = substr($0, 7); sub(/ .*/, "", long); value = ""
        at = index(long, "="); if (at) { value = substr(long, at + 1); long = substr(long, 1, at - 1) }
        print long, value
        if (substr($0, 3, 1) == "-") print substr($0, 3, 2), value
    }'
}

# _faultless_value WORD PROGRAM HELP TEXT: completes TEXT, the value that the help calls WORD.
_faultless_value() {
    local kind=$1 program=$2 help=$3 text=$4 names before=
    case $kind in
    FILE | OUT | PLAN) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$text") ;;
    FOLDER) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$text") ;;
    CMD) mapfile -t COMPREPLY < <(compgen -c -- "$text") ;;
    PID) mapfile -t COMPREPLY < <(cd /proc && compgen -d -X '!*([0-9])' -- "$text") ;;
    LIST) # names with commas between, as the help has them
        names=$(tr '\n' ' ' <<<"$help" | sed -nE 's/.*LIST is NAME,NAME,\.\.\. of ([^.(]*) \(.*/\1/p')
        names=${names// and / }
        [[ $text != *,* ]] || before=${text%,*},
        compopt -o nospace
        mapfile -t COMPREPLY < <(compgen -P "$before" -W "${names//,/ }" -- "${text##*,}")
        ;;
    NAME=VALUE)
        [[ $text != *=* && $("$program" --version 2>/dev/null) == faultless* ]] || return 0
        names=$("$program" --check --json=- 2>/dev/null | grep -oE '"name": "FAULTLESS_[A-Z0-9_]+"' |
            sed -E 's/.*FAULTLESS_(.*)"/\L\1=/')
        compopt -o nospace
        mapfile -t COMPREPLY < <(compgen -W "$names" -- "${text,,}")
        ;;
    esac
}

# _faultless_operand FIRST PROGRAM HELP TEXT: what stands behind the options; FIRST is where, in
# COMP_WORDS.
_faultless_operand() {
    local first=$1 usage=${3%%$'\n'*} kind=
    if [[ $usage == *' CMD'* ]]; then
        if declare -F _command_offset >/dev/null; then
            _command_offset "$first"
            return
        fi
        kind=FILE
        ((first < COMP_CWORD)) || kind=CMD
    elif [[ $usage == *' PID'* ]]; then
        kind=PID
    elif [[ $usage == *FILE* || $usage == *PLAN* ]]; then
        kind=FILE
    fi
    _faultless_value "$kind" "$2" "$3" "$4"
}

_faultless_flags() { # _faultless_flags TEXT OPTIONS
    mapfile -t COMPREPLY < <(compgen -W "$(sed -E 's/^(--.*) .+/\1=/; s/ .*//' <<<"$2")" -- "$1")
    [[ ${#COMPREPLY[@]} != 1 || ${COMPREPLY[0]} != *= ]] || compopt -o nospace
}

_faultless() {
    local program=${COMP_WORDS[0]/#\~/$HOME} help options word text value expected= i
    local -a words=() begins=() # bash has cut words at =; begins: where each stands in COMP_WORDS
    local -A takes=()
    COMPREPLY=()
    for ((i = 0; i <= COMP_CWORD; i++)); do
        if ((i > 0)) && [[ ${COMP_WORDS[i]} == =* || ${words[-1]} == *= ]]; then
            words[-1]+=${COMP_WORDS[i]}
        else
            words+=("${COMP_WORDS[i]}")
            begins+=("$i")
        fi
    done
    text=${words[-1]}
    help=$("$program" --help 2>/dev/null) || return 0
    i=1
    if [[ $help == Usage:*' COMMAND '* ]]; then
        if ((${#words[@]} == 2)); then
            mapfile -t COMPREPLY < <(compgen -W "$(awk '/^  [a-z]/ { print $1 }' <<<"$help") --help --version" -- "$text")
            return
        fi
        help=$("$program" "${words[1]}" --help 2>/dev/null) || return 0
        i=2
    fi
    options=$(_faultless_options <<<"$help")
    while read -r word value; do
        takes[$word]=$value
    done <<<"$options"
    for (( ; i < ${#words[@]} - 1; i++)); do
        if [[ -n $expected ]]; then
            expected=
        elif [[ ${words[i]} == -- ]]; then
            i=$((i + 1))
            text= # an operand, whatever it begins with
            break
        elif [[ ${words[i]} == -* ]]; then
            expected=${takes[${words[i]}]:-}
        else
            break
        fi
    done
    if [[ -n $expected ]]; then
        _faultless_value "$expected" "$program" "$help" "${words[-1]}"
    elif ((i == ${#words[@]} - 1)) && [[ $text == --*=* ]]; then
        _faultless_value "${takes[${text%%=*}]:-}" "$program" "$help" "${text#*=}"
    elif ((i == ${#words[@]} - 1)) && [[ $text == -* ]]; then
        _faultless_flags "$text" "$options"
    else
        _faultless_operand "${begins[i]}" "$program" "$help" "${words[-1]}"
    fi
}
complete -F _faultless faultless faultstat faultplan

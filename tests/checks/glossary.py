#!/usr/bin/env python3
"""What docs/internals/glossary.md and the code do not agree in, a line each. tests/checks/docs runs
it with the root, and the files of the code on standard input.

Names are those between code ticks. A struct is to be named in rows as often as it is defined: one
name may be that of several. A word is used where a comment or an identifier has it, or its plural.
"""
import collections
import os
import re
import sys

root = sys.argv[1]
with open(os.path.join(root, "docs/internals/glossary.md"), encoding="utf-8") as file:
    page = file.read()
text = {}
for name in sys.stdin.read().splitlines():
    with open(os.path.join(root, name), encoding="utf-8", errors="replace") as file:
        text[name] = file.read()

# The C code without its comments; a string may have what looks like one.
c = "\n".join(text[name] for name in text if name.endswith((".c", ".h", ".hpp")))
string = r'''("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+')'''
c = re.sub(string + r"|/\*.*?\*/|//[^\n]*", lambda m: m[1] or " ", c, flags=re.S)
tags = collections.Counter(re.findall(r"\b((?:struct|enum|union) fl_\w+)\s*\{", c))
options = {"FAULTLESS_" + name.upper()
           for name in re.findall(r"^X\([A-Z]+, *(\w+)", text["src/core/options.def"], re.M)}
constants = set(re.findall(r"^# *define (FL_\w+)", c, re.M))
for body in re.findall(r"\benum\b[^;{}()]*\{([^}]*)\}", c):
    constants.update(re.findall(r"\bFL_\w+", body))
# Declared where a line begins with no blank: functions and variables; and macros like functions.
plain = set(re.findall(r"^# *define (fl_\w+)", c, re.M))
for line in re.findall(r"^[A-Za-z_}].*", re.sub(r"\b(struct|enum|union) fl_\w+", "", c), re.M):
    plain.update(re.findall(r"\b(fl_\w+)(?=\s*[(\[;=,]|$)", line))


def complaint(name):
    """Why the code does not have that name; None: it has."""
    if name.startswith(("struct", "enum", "union")):
        return None if name in tags else f"{name} is not defined"
    if name.startswith("FAULTLESS_"):
        return None if name in options else f"{name} is no option"
    if name.startswith("FL_"):
        return None if name in constants else f"{name} is no macro and no constant"
    return None if name in plain else f"{name} is no function and no variable"


def names_of(ticks):
    return re.findall(r"(?:\b(?:struct|enum|union) )?\b(?:fl|FL|FAULTLESS)_\w+", ticks)


found = []
for ticks in re.findall(r"`([^`\n]+)`", page):
    if re.fullmatch(r"<?[\w.][\w./-]*>?", ticks) and re.search(r"/|\.(c|h|hpp|def|txt|md)$", ticks):
        path = "include/" + ticks[1:-1] if ticks[0] == "<" else ticks
        if not os.path.exists(os.path.join(root, path)):
            found.append(f"{ticks} does not exist")
    else:
        found.extend(map(complaint, names_of(ticks)))

rows = [line for line in page.splitlines() if line.startswith("| ")]
named = collections.Counter(name for row in rows for ticks in re.findall(r"`([^`]+)`", row)
                            for name in names_of(ticks))
for tag, count in tags.items():
    if tag.startswith("struct") and named[tag] < count:
        found.append(f"{tag} is defined {count} times, rows name it {named[tag]} times")


def as_words(string):
    return " " + " ".join(re.findall(r"[a-z0-9]+", string.lower())) + " "


used = as_words("\n".join(text.values()))
for row in rows:
    for word in re.sub(r"\(.*?\)", "", row.split("|")[1]).split(","):
        word = word.strip()
        forms = as_words(word), as_words(word + "s")
        if word not in ("say", "noun") and not any(form in used for form in forms):
            found.append(f"no code uses the word {word}")

for line in filter(None, dict.fromkeys(found)):
    print("docs/internals/glossary.md: " + line)

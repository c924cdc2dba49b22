#!/usr/bin/python3
"""embed.py FILE NAME: the file as a C string of that name, on standard output; for the build."""
import sys

data = open(sys.argv[1], "rb").read()
assert b"\0" not in data
print(f"/* {sys.argv[2]}: made from a file of the sources. */\nextern const char {sys.argv[2]}[];\n"
      f"const char {sys.argv[2]}[] = {{")
for at in range(0, len(data), 20):
    print("".join(f"{b if b < 128 else b - 256}," for b in data[at:at + 20]))
print("0};")

# SPDX-License-Identifier: LGPL-3.0-or-later
"""memcheck.py FILE: of valgrind's XML, the errors and leaks whose stack has a frame of the module.
Ends with 1 when there are any. The server has faults of its own; they do not count."""

import sys
import xml.etree.ElementTree as ET

root = ET.parse(sys.argv[1]).getroot()
n = 0
for e in root.iter("error"):
    frames = [f for s in e.iter("stack") for f in s.iter("frame")]
    if not any("libfsalssc" in (f.findtext("obj") or "") for f in frames):
        continue
    n += 1
    what = e.findtext("what") or e.findtext("xwhat/text")
    print(e.findtext("kind"), "-", what)
    for f in frames[:14]:
        print("    ", f.findtext("fn"), f.findtext("file"), f.findtext("line"))
print(n, "errors with our code in the stack")
sys.exit(n != 0)

"""Emulations of controllers' tools: programs that keep the state of one virtual drive and speak the documented format.

They stand for hardware that was not at hand. The state is a JSON file; what a battery is worth is part of it.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from worker.controllers.tests.tools import install

NAA = "600605b010cbe11029aeeba55d3ea3e6"
START = {
    "write": "wb", "read": "nora", "io": "direct", "disk": "default", "bad": "no", "battery": "Optimal", "asked": [],
    "naa": NAA, "address": "00:03:00:00",
}  # fmt: skip
HEAD = """
import json, os, sys
PATH = {path!r}
state = json.load(open(PATH))
words = sys.argv[1:]
def save():
    with open(PATH + ".new", "w") as file:
        json.dump(state, file)
    os.replace(PATH + ".new", PATH)
state["asked"].append(" ".join(words))
save()
good = state["battery"] in ("Optimal", "OK")
"""

STORCLI = """
def say(data, **more):
    status = {"CLI Version": "007.1017.0000.0000", "Controller": 0, "Status": "Success", "Description": "None"} | more
    print(json.dumps({"Controllers": [{"Command Status": status, "Response Data": data}]}))
    sys.exit(0 if status["Status"] == "Success" else 1)
PROPERTIES = {
    "wrcache": ("write", ("wt", "wb", "awb")), "rdcache": ("read", ("ra", "nora")),
    "iopolicy": ("io", ("direct", "cached")), "pdcache": ("disk", ("on", "off", "default")),
}
if "set" in words:
    name, value = words[words.index("set") + 1].split("=")
    field, values = PROPERTIES[name]
    ok = value in values and value != state.get("refuses")
    if ok and not state.get("ignores"):
        state[field] = value
        save()
    row = {"VD": 0, "Property": name, "Value": value, "Status": "Success" if ok else "Failed",
           "ErrCd": 0 if ok else 255, "ErrMsg": "-" if ok else "Operation not allowed"}
    say({}, **{"Detailed Status": [row], "Status": "Success" if ok else "Failure"})
write = state["write"]
now = {"wb": "WB" if good else "WT", "wt": "WT", "awb": "AWB"}[write]
cache = {"ra": "R", "nora": "NR"}[state["read"]] + now + {"direct": "D", "cached": "C"}[state["io"]]
row = {"DG/VD": "0/0", "TYPE": "RAID5", "State": "Optl", "Access": "RW", "Cache": cache, "Size": "3.490 TB", "Name": ""}
properties = {
    "Strip Size": "256 KB", "Write Cache(initial setting)": "WriteThrough" if write == "wt" else "WriteBack",
    "Disk Cache Policy": {"on": "Enabled", "off": "Disabled", "default": "Disk's Default"}[state["disk"]],
    "SCSI NAA Id": state["naa"],
}
if words[0] == "/call":
    basics = {"Controller": 0, "Model": "AVAGO MegaRAID SAS 9361-8i", "PCI Address": state["address"]}
    say({"Basics": basics, "Cachevault_Info": [{"Model": "CVPM02", "State": state["battery"]}]})
if "/v" in words[0]:
    say({"/c0/v0": [row], "PDs for VD 0": [{"EID:Slt": "252:0"}], "VD0 Properties": properties})
say({}, Status="Failure", Description="No drive found!")
"""

MEGACLI = """
def say(*lines, code=0):
    print("\\n".join(("", "Adapter #0" if not lines or "Adapter" not in lines[0] else "", *lines, "")))
    print(f"Exit Code: 0x{code:02x}")
    sys.exit(code)
SETS = {
    "WB": ("write", "wb"), "WT": ("write", "wt"), "CachedBadBBU": ("bad", "yes"), "NoCachedBadBBU": ("bad", "no"),
    "RA": ("read", "ra"), "NORA": ("read", "nora"), "ADRA": ("read", "adra"), "Direct": ("io", "direct"),
    "Cached": ("io", "cached"), "EnDskCache": ("disk", "on"), "DisDskCache": ("disk", "off"),
}
if words[0] == "-LDSetProp":
    if words[1] == state.get("refuses"):
        say("Adapter 0: Virtual Drive 0: the requested property is not supported.", code=0x32)
    field, value = SETS[words[1]]
    state[field] = value
    save()
    say(f"Set property to {words[1]} on Adapter 0, VD 0 (target id: 0) success")
def policy(write):
    return ", ".join((
        {"wb": "WriteBack", "wt": "WriteThrough"}[write],
        {"ra": "ReadAhead", "nora": "ReadAheadNone", "adra": "ReadAdaptive"}[state["read"]],
        {"direct": "Direct", "cached": "Cached"}[state["io"]],
        {"yes": "Write Cache OK if Bad BBU", "no": "No Write Cache if Bad BBU"}[state["bad"]],
    ))
now = state["write"] if good or state["bad"] == "yes" else "wt"
drive = (
    "Virtual Drive: 0 (Target Id: 0)", "Name                :",
    "RAID Level          : Primary-5, Secondary-0, RAID Level Qualifier-3", "State               : Optimal",
    "Strip Size          : 64 KB", "Span Depth          : 1", f"Default Cache Policy: {policy(state['write'])}",
    f"Current Cache Policy: {policy(now)}",
    "Disk Cache Policy   : " + {"on": "Enabled", "off": "Disabled", "default": "Disk's Default"}[state["disk"]],
)
if words[0] == "-AdpAllInfo":
    say("Product Name    : LSI MegaRAID SAS 9266-8i", "BBU              : Present")
if words[0] == "-AdpGetPciInfo":
    say("Bus Number      : 3", "Device Number   : 0", "Function Number : 0")
if words[0] == "-AdpBbuCmd":
    say("BatteryType: iBBU08", f"Battery State: {state['battery']}")
if words[0] == "-LDInfo":
    say("Adapter 0 -- Virtual Drive Information:", *drive)
say(*(drive if words[0] == "-LdPdInfo" else ()))
"""

SSACLI = """
if "modify" in words:
    value = words[-1].partition("=")[2]
    if value == state.get("refuses"):
        print("\\nError: This operation is not supported with the current configuration.\\n")
        sys.exit(1)
    state["write"] = {"enable": "wb", "disable": "wt"}[value]
    save()
    sys.exit(0)
print(f'''
Smart Array P420i in Slot 0 (Embedded)
   Slot: 0
   Controller Status: OK
   Cache Status: {"OK" if good else "Temporarily Disabled"}
   Drive Write Cache: Disabled
   No-Battery Write Cache: Disabled
   Cache Backup Power Source: Capacitors
   Battery/Capacitor Count: 1
   Battery/Capacitor Status: {state["battery"]}
   PCI Address (Domain:Bus:Device.Function): 0000:03:00.0

   Array: A
      Interface Type: SAS

      Logical Drive: 1
         Size: 200.00 GB
         Fault Tolerance: 5
         Strip Size: 256 KB
         Status: OK
         Caching:  {"Enabled" if state["write"] == "wb" else "Disabled"}
         Unique Identifier: {state["naa"].upper()}
         Disk Name: /dev/sda
''')
"""

ARECA = """
def say(*lines, error="0x00>: Success."):
    print("\\n".join((*lines, "=" * 40, f"GuiErrMsg<{error}")))
    sys.exit(0)
place = " ".join(words)
if words[:2] == ["vsf", "modify"]:
    if state.get("refuses"):
        say(error="0x08>: Password Required.")
    state["write"] = {"cache=Y": "wb", "cache=N": "wt"}[words[3]]
    save()
    say()
if place == "vsf info":
    say("  # Name  Raid Name  Level  Capacity Ch/Id/Lun  State", "  1 VOL  SET  Raid5  192.0GB 00/00/00  Normal")
if words[:2] == ["vsf", "info"]:
    cache = "Write Back" if state["write"] == "wb" else "Write Through"
    say("SCSI Ch/Id/Lun  : 00/00/00", "Raid Level      : Raid5", "Stripe Size     : 64K", f"Cache Mode      : {cache}",
        "Volume State    : Normal")
say("Controller Name    : ARC-1680")
"""

_PROGRAMS = {
    "storcli": ("storcli64", STORCLI), "MegaCli": ("MegaCli64", MEGACLI), "ssacli": ("ssacli", SSACLI),
    "areca-cli": ("cli64", ARECA),
}  # fmt: skip


class Emulation:
    """One controller with one virtual drive, spoken to by one tool."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch, tool: str, **state: Any) -> None:
        self.path = directory / "state.json"
        self.path.write_text(json.dumps(START | state))
        program, body = _PROGRAMS[tool]
        install(directory, monkeypatch, program, HEAD.format(path=str(self.path)) + body)

    def __getitem__(self, name: str) -> Any:
        return json.loads(self.path.read_text())[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self.path.write_text(json.dumps(json.loads(self.path.read_text()) | {name: value}))

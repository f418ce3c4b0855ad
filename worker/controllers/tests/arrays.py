"""Emulated controllers that make and delete virtual drives: programs that keep drives and arrays in a JSON file.

They speak the documented format of storcli or MegaCli, behind a folder that looks like /sys. The disk that a virtual
drive becomes is a loop device, put behind the controller there when the drive is made.
"""

import json
import os
import sys as interpreter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from worker.guard import slots
from worker.inventory.tests.functions import function

ADDRESS = "0000:03:00.0"
_HEAD = """
import json, os, re, shutil, sys
PATH = {path!r}
state = json.load(open(PATH))
words = sys.argv[1:]
line = " ".join(words)
state["asked"].append(line)
def save():
    json.dump(state, open(PATH, "w"))
save()
def place(number):
    return os.path.join(state["behind"], f"host0/target/0:2:{{number}}:0")
def add(slots, **facts):
    number = str(len(state["made"]))
    if state["refuses"]:
        return ""
    disk = state["spare"].pop(0)
    naa = f"600605b010cbe1102900000000000{{len(state['made']):03x}}"
    state["made"].append(number)
    state["vds"][number] = facts | {{"drives": slots, "naa": naa, "disk": disk}}
    for slot in slots:
        state["drives"][slot]["state"] = "used"
    os.makedirs(os.path.join(place(number), "block", disk))
    open(os.path.join(place(number), "wwid"), "w").write(f"naa.{{naa}}\\n")
    os.symlink(place(number), os.path.join(place(number), "block", disk, "device"))
    os.symlink(os.path.join(place(number), "block", disk), os.path.join(state["sys"], "class/block", disk))
    save()
    return number
def remove(number):
    gone = state["vds"].pop(number)
    for slot in gone["drives"]:
        state["drives"][slot]["state"] = "good"
    state["spare"].append(gone["disk"])
    os.unlink(os.path.join(state["sys"], "class/block", gone["disk"]))
    shutil.rmtree(place(number))
    save()
"""

_STORCLI = """
def say(data, **more):
    status = {"CLI Version": "007.1017.0000.0000", "Controller": 0, "Status": "Success", "Description": "None"} | more
    print(json.dumps({"Controllers": [{"Command Status": status, "Response Data": data}]}))
    sys.exit(0 if status["Status"] == "Success" else 1)
CACHE = {"wb": "WB", "wt": "WT", "awb": "AWB", "ra": "R", "nora": "NR", "direct": "D", "cached": "C"}
if "add" in words:
    given = dict(word.split("=") for word in words if "=" in word)
    slots = given["drives"].split(",")
    if any(state["drives"][slot]["state"] != "good" for slot in slots):
        say({}, Status="Failure", Description="Add VD failed: drive is not in UGood state")
    count = len(slots) // int(given["PDperArray"]) if "PDperArray" in given else 1
    strip = state.get("strip") or given["strip"]
    if not add(slots, name=given["name"], level=given["type"].upper(), strip=strip, spans=count,
               cache=[w for w in words if w in CACHE], disk_cache=given.get("pdcache", "default")):
        say({}, Status="Failure", Description="Add VD failed: " + state["refuses"])
    say({})
if "del" in words:
    remove(re.search(r"/v(\\d+)", words[0])[1])
    say({})
if "autobgi=off" in words:
    state["vds"][re.search(r"/v(\\d+)", words[0])[1]]["bgi"] = "off"
    save()
    say({})
def vd(number):
    found = state["vds"][number]
    cache = found["cache"]
    read = "R" if "ra" in cache else "NR"
    write = next((CACHE[w] for w in cache if w in ("wb", "wt", "awb")), "WT")
    if write == "WB" and state["battery"] != "Optimal":
        write = "WT"
    row = {"DG/VD": f"{number}/{number}", "TYPE": found["level"], "State": "Optl", "Access": "RW",
           "Cache": read + write + ("C" if "cached" in cache else "D"), "Size": "0.390 GB", "Name": found["name"]}
    disk = {"on": "Enabled", "off": "Disabled", "default": "Disk's Default"}[found["disk_cache"]]
    return {f"/c0/v{number}": [row], f"PDs for VD {number}": [{"EID:Slt": slot} for slot in found["drives"]],
            f"VD{number} Properties": {"Strip Size": f"{found['strip']} KB", "Span Depth": found["spans"],
                "Disk Cache Policy": disk, "SCSI NAA Id": found["naa"]}}
if words[0] == "/call":
    say({"Basics": {"Controller": 0, "Model": "AVAGO MegaRAID SAS 9361-8i", "PCI Address": "00:03:00:00"}})
if words[0] == "/c0/vall":
    found = {key: value for number in state["vds"] for key, value in vd(number).items()}
    say(found) if found else say({}, Status="Failure", Description="No VDs have been configured.")
if words[0].startswith("/c0/v"):
    say(vd(words[0][5:]))
SHOWN = {"good": ("UGood", "-"), "used": ("Onln", 0), "spare": ("GHS", "-"), "foreign": ("UGood", "F"),
         "bad": ("UBad", "-")}
if words[0] == "/c0/eall/sall":
    data = {}
    for slot, drive in state["drives"].items():
        key = "Drive /c0/e{}/s{}".format(*slot.split(":"))
        shown, group = SHOWN[drive["state"]]
        data[key] = [{"EID:Slt": slot, "State": shown, "DG": group, "Size": "400 MB", "Intf": "SATA", "Med": "SSD"}]
        data[key + " - Detailed Information"] = {key + " Device attributes": {"SN": drive["serial"]}}
    say(data)
say({}, Status="Failure", Description="Un-supported command")
"""

_MEGACLI = """
def say(*lines, code=0):
    print("\\n".join(("", *lines, "", f"Exit Code: 0x{code:02x}")))
    sys.exit(code)
def shown(number):
    found = state["vds"][number]
    cache = found["cache"]
    policy = ", ".join(("WriteThrough" if "WT" in cache else "WriteBack",
        "ReadAhead" if "RA" in cache else "ReadAheadNone",
        "Cached" if "Cached" in cache else "Direct",
        "Write Cache OK if Bad BBU" if "CachedBadBBU" in cache else "No Write Cache if Bad BBU"))
    level = found["level"]
    primary, secondary = (level[0], "3") if len(level) == 2 else (level, "0")
    return (f"Virtual Drive: {number} (Target Id: {number})", f"Name                :{found['name']}",
        f"RAID Level          : Primary-{primary}, Secondary-{secondary}, RAID Level Qualifier-0",
        f"Strip Size          : {found['strip']} KB", f"Span Depth          : {found['spans']}",
        f"Default Cache Policy: {policy}", f"Current Cache Policy: {policy}",
        "Disk Cache Policy   : " + found["disk_cache"],
        *(row for slot in found["drives"] for row in
          ("Enclosure Device ID: {}".format(slot.split(":")[0]), "Slot Number: {}".format(slot.split(":")[1]))))
if words[0] in ("-CfgLdAdd", "-CfgSpanAdd"):
    level = re.search(r"-R(\\d+)", line)[1]
    groups = re.findall(r"\\[([^]]+)\\]", line)
    slots = ",".join(groups).split(",")
    if any(state["drives"][slot]["state"] != "good" for slot in slots):
        say("The specified physical disk does not have the appropriate attributes to complete", code=0x26)
    strip = re.search(r"-strpsz(\\d+)", line)[1]
    number = add(slots, name="", level=level, strip=strip, spans=len(groups), cache=words, disk_cache="Disk's Default")
    if not number:
        say("Adapter 0: Configure Adapter Failed", state["refuses"], code=0x03)
    say(f"Adapter 0: Created VD {number}", "Adapter 0: Configured the Adapter!!")
number = next((word[2:] for word in words if re.fullmatch(r"-L\\d+", word)), "")
if words[0] == "-CfgLdDel":
    remove(number)
    say(f"Adapter 0: Deleted Virtual Drive-{number}(target id-{number})")
if words[:2] == ["-LDSetProp", "-Name"]:
    state["vds"][number]["name"] = words[2]
    save()
    say(f"Set property to {words[2]} on Adapter 0, VD {number} (target id: {number}) success")
if words[0] == "-LDSetProp":
    state["vds"][number]["disk_cache"] = {"EnDskCache": "Enabled", "DisDskCache": "Disabled"}[words[1]]
    save()
    say("Set Disk Cache Policy success")
if words[:2] == ["-LDBI", "-Dsbl"]:
    state["vds"][number]["bgi"] = "off"
    save()
    say("Adapter 0, VD " + number + ": Background Initialization is disabled.")
if words[0] == "-AdpAllInfo":
    say("Adapter #0", "Product Name    : LSI MegaRAID SAS 9266-8i")
if words[0] == "-AdpGetPciInfo":
    say("PCI information for Controller 0", "Bus Number      : 3", "Device Number   : 0", "Function Number : 0")
if words[0] == "-LdPdInfo":
    say("Adapter #0", *(row for each in state["vds"] for row in shown(each)))
SHOWN = {"good": "Unconfigured(good), Spun Up", "used": "Online, Spun Up", "spare": "Hotspare, Spun Up",
         "foreign": "Unconfigured(good), Spun Up", "bad": "Unconfigured(bad)"}
if words[0] == "-PDList":
    rows = ["Adapter #0"]
    for slot, drive in state["drives"].items():
        enclosure, bay = slot.split(":")
        inquiry = f"{drive['serial']:<20}{'INTEL SSDSC2KG019T8':<40}XCV10110"
        rows += [f"Enclosure Device ID: {enclosure}", f"Slot Number: {bay}", "PD Type: SATA",
                 f"Firmware state: {SHOWN[drive['state']]}",
                 "Foreign State: " + ("Foreign" if drive["state"] == "foreign" else "None"), f"Inquiry Data: {inquiry}"]
    say(*rows)
say("Adapter #0")
"""

_PROGRAMS = {"storcli": ("storcli64", _STORCLI), "MegaCli": ("MegaCli64", _MEGACLI)}


class Shelf:
    """One controller with drives in slots, and loop devices that its virtual drives become."""

    def __init__(
        self, directory: Path, monkeypatch: pytest.MonkeyPatch, tool: str, *, drives: int, disks: Iterable[str]
    ) -> None:
        self.sys = directory / "sys"
        behind = function(self.sys, ADDRESS, "0x010400", "megaraid_sas")
        (self.sys / "class/block").mkdir(parents=True)
        self.path = directory / "shelf.json"
        self.write(
            drives={f"252:{n}": {"serial": f"SER{n}", "state": "good"} for n in range(drives)}, vds={}, made=[],
            spare=[disk.removeprefix("/dev/") for disk in disks], battery="Optimal", asked=[], refuses="",
            sys=str(self.sys), behind=str(behind),
        )  # fmt: skip
        program, body = _PROGRAMS[tool]
        tools = directory / "tools"
        tools.mkdir()
        (tools / program).write_text(f"#!{interpreter.executable} -SE\n{_HEAD.format(path=str(self.path))}{body}")
        (tools / program).chmod(0o755)
        monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
        monkeypatch.setattr(slots, "SYS", self.sys)

    def read(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.path.read_text())
        return found

    def write(self, **facts: Any) -> None:
        self.path.write_text(json.dumps((self.read() if self.path.exists() else {}) | facts))

    def put(self, slot: str, **facts: str) -> None:
        drives = self.read()["drives"]
        drives[slot] |= facts
        self.write(drives=drives)

    def asked(self, word: str) -> list[str]:
        """Every command with this word."""
        return [line for line in self.read()["asked"] if word in line]

    def states(self) -> set[str]:
        return {drive["state"] for drive in self.read()["drives"].values()}

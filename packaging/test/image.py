"""Helps to run the image of slowpath without a registry.

image.py architectures LAYOUT          prints those in the layout
image.py choose LAYOUT ARCHITECTURE    leaves that image alone under the tag: umoci knows no platforms
image.py run BUNDLE CAPABILITIES ARGUMENT...
    changes the configuration of a bundle: what it runs, in the network and the process namespace of whoever runs it,
    with these capabilities (separated by commas, "" for none)
"""
import json
import pathlib
import sys


def index_of(layout):
    """The top of a layout, and the index of architectures that it names."""
    top = json.loads((layout / "index.json").read_text())
    algorithm, digest = top["manifests"][0]["digest"].split(":")
    return top, json.loads((layout / "blobs" / algorithm / digest).read_text())


def architectures(layout):
    """One a line."""
    for manifest in index_of(layout)[1]["manifests"]:
        print(manifest["platform"]["architecture"])


def choose(layout, architecture):
    """Puts the manifest of an architecture in the place of the index."""
    top, index = index_of(layout)
    (chosen,) = [m for m in index["manifests"] if m["platform"]["architecture"] == architecture]
    chosen["annotations"] = top["manifests"][0]["annotations"]
    top["manifests"] = [chosen]
    (layout / "index.json").write_text(json.dumps(top))


def run(bundle, capabilities, arguments):
    """Writes what crun is to run."""
    path = bundle / "config.json"
    config = json.loads(path.read_text())
    process = config["process"]
    process["terminal"] = False
    process["args"] = [process["args"][0], *arguments]  # the entry point of the image
    process["noNewPrivileges"] = True
    kinds = ("bounding", "effective", "inheritable", "permitted", "ambient")
    process["capabilities"] = {kind: capabilities for kind in kinds}
    process.pop("rlimits", None)
    config["linux"]["namespaces"] = [
        n for n in config["linux"]["namespaces"] if n["type"] not in ("network", "pid", "cgroup")
    ]
    config["linux"].pop("resources", None)
    config["mounts"] = [m for m in config["mounts"] if m["type"] != "cgroup"]
    for mount in config["mounts"]:
        if mount["destination"] == "/sys":  # that of the host, as with --network host
            mount.update(type="none", source="/sys", options=["rbind", "ro", "nosuid", "noexec", "nodev"])
    path.write_text(json.dumps(config))


if __name__ == "__main__":
    place = pathlib.Path(sys.argv[2])
    if sys.argv[1] == "architectures":
        architectures(place)
    elif sys.argv[1] == "choose":
        choose(place, sys.argv[3])
    else:
        run(place, [c for c in sys.argv[3].split(",") if c], sys.argv[4:])

"""Makes a bundle of the OCI runtime specification run as a container of a pod does.

container.py BUNDLE MANIFESTS HOST SECCOMP CAPABILITIES ARGUMENT...
    BUNDLE        made by umoci; its config.json is changed
    MANIFESTS     with a DaemonSet, whose pod it is: its user, capabilities, namespaces, root and volumes
    HOST          directory that has what is not the machine's own: paths below /var
    SECCOMP       profile that RuntimeDefault stands for
    CAPABILITIES  "all" for those of the manifest, or a list with commas
    ARGUMENT...   instead of those of the manifest
"""
import json
import pathlib
import sys

import yaml

# As containerd has them for a container that is not privileged (pkg/oci).
MASKED = ["/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
          "/proc/timer_stats", "/proc/sched_debug", "/sys/firmware", "/sys/devices/virtual/powercap", "/proc/scsi"]
READ_ONLY = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]


def source(volume, host):
    """Where a volume is, and its type; a path below /var is one of the test."""
    if "emptyDir" in volume:
        return "tmpfs", "tmpfs", ["size=64m", "mode=1777"]
    path = volume["hostPath"]["path"]
    if path.startswith("/var/"):
        path = str(host / path[1:])
        pathlib.Path(path).mkdir(parents=True, exist_ok=True)
    return path, "bind", ["rbind"]


def main(bundle, manifests, host, seccomp, capabilities, arguments):
    """Writes config.json."""
    (pod,) = [d["spec"]["template"]["spec"] for d in yaml.safe_load_all(manifests.read_text())
              if d and d["kind"] == "DaemonSet"]
    (container,) = pod["containers"]
    rights = container["securityContext"]
    assert pod["hostPID"] and pod["hostNetwork"] and rights["capabilities"]["drop"] == ["ALL"]
    config = json.loads((bundle / "config.json").read_text())
    process = config["process"]
    process |= {"terminal": False, "args": ["/usr/bin/slowpath", *arguments], "cwd": "/",
                "user": {"uid": rights["runAsUser"], "gid": rights["runAsGroup"]},
                "noNewPrivileges": not rights["allowPrivilegeEscalation"]}
    process["env"] = ["PATH=/usr/bin", "TMPDIR=/tmp"]
    added = rights["capabilities"]["add"] if capabilities == "all" else [c for c in capabilities.split(",") if c]
    # Kubernetes knows no ambient capabilities, and runtimes give no inheritable ones.
    process["capabilities"] = {kind: [f"CAP_{c}" for c in added] for kind in ("bounding", "effective", "permitted")}
    process.pop("rlimits", None)
    config["root"]["readonly"] = rights["readOnlyRootFilesystem"]
    linux = config["linux"]
    linux.pop("resources", None)
    linux["namespaces"] = [{"type": kind} for kind in ("mount", "ipc", "uts", "cgroup")]
    assert rights["seccompProfile"] == {"type": "RuntimeDefault"}
    linux["seccomp"] = json.loads(seccomp.read_text())
    linux["maskedPaths"], linux["readonlyPaths"] = MASKED, READ_ONLY
    linux["cgroupsPath"] = "/kubepods/burstable/pod5aaaaaaa-0000-4000-8000-000000000000/" + "5a" * 32
    config.pop("hostname", None)
    config["mounts"] = [m for m in config["mounts"] if m["type"] not in ("cgroup", "mqueue", "bind")]
    for mount in config["mounts"]:
        if mount["destination"] == "/sys":
            mount |= {"type": "sysfs", "source": "sysfs", "options": ["nosuid", "noexec", "nodev", "ro"]}
    volumes = {v["name"]: v for v in pod["volumes"]}
    for mount in container["volumeMounts"]:
        path, kind, options = source(volumes[mount["name"]], host)
        options = [*options, "nosuid", "nodev", "ro" if mount.get("readOnly") else "rw"]
        config["mounts"].append({"destination": mount["mountPath"], "type": kind, "source": path, "options": options})
    (bundle / "config.json").write_text(json.dumps(config))


if __name__ == "__main__":
    main(*(pathlib.Path(name) for name in sys.argv[1:5]), sys.argv[5], sys.argv[6:])

"""Helps to check manifests for Kubernetes.

kubernetes.py schemas SWAGGER DIRECTORY     writes a JSON schema for kubeconform of each kind of the API, in which
                                            fields that the API does not know are errors
kubernetes.py crd FILE DIRECTORY            the same of a CustomResourceDefinition
kubernetes.py pods MANIFESTS NAMESPACE      prints the pods that the templates of the manifests make
kubernetes.py gateway MANIFESTS DIRECTORY   prints the configuration of the gateway, with DIRECTORY in the place of the
                                            directories of its pod
"""
import json
import pathlib
import sys

import yaml

# What the API takes beyond what its schema says: 1 for "1" and the like.
LOOSE = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": ["string", "integer"]},
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": ["string", "number"]},
}


def strict(schema):
    """The schema without unknown fields, and with int-or-string as JSON schema has it."""
    if isinstance(schema, list):
        return [strict(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    out = {key: strict(value) for key, value in schema.items()}
    if schema.get("x-kubernetes-int-or-string"):
        out["type"] = ["integer", "string"]
    if "properties" in schema and not {"additionalProperties", "x-kubernetes-preserve-unknown-fields"} & set(schema):
        out["additionalProperties"] = False
    return out


def references(schema):
    """Names of the definitions that a schema refers to."""
    if isinstance(schema, list):
        return {name for s in schema for name in references(s)}
    if not isinstance(schema, dict):
        return set()
    own = {schema["$ref"].rpartition("/")[2]} if isinstance(schema.get("$ref"), str) else set()
    return own | {name for s in schema.values() for name in references(s)}


def write(directory, kind, group, version, schema):
    """Under the name that kubeconform looks for."""
    suffix = "-".join(part for part in (group.split(".")[0], version) if part)
    (directory / f"{kind.lower()}-{suffix}.json").write_text(json.dumps(schema))


def schemas(swagger, directory):
    """Of all kinds of the API."""
    read = json.loads(swagger.read_text())["definitions"]
    definitions = {name: LOOSE.get(name) or strict(definition) for name, definition in read.items()}
    for name, definition in definitions.items():
        for kind in definition.get("x-kubernetes-group-version-kind", []):
            needed, new = set(), references(definition)
            while new:
                needed |= new
                new = {r for n in new for r in references(definitions[n])} - needed
            write(directory, kind["kind"], kind["group"], kind["version"],
                  definition | {"definitions": {n: definitions[n] for n in needed}})


def crd(path, directory):
    """Of a kind that an operator adds."""
    spec = yaml.safe_load(path.read_text())["spec"]
    for version in spec["versions"]:
        schema = strict(version["schema"]["openAPIV3Schema"])
        schema["properties"]["metadata"] = {"type": "object"}
        write(directory, spec["names"]["kind"], spec["group"], version["name"], schema)


def documents(path):
    """The manifests of a file."""
    return [d for d in yaml.safe_load_all(path.read_text()) if d]


def pods(path, namespace):
    """What the controllers would make, with what the controller of DaemonSets and Jobs adds left out."""
    for d in documents(path):
        template = d.get("spec", {}).get("template")
        if d["kind"] in ("DaemonSet", "StatefulSet", "Job") and template:
            claims = [{"name": c["metadata"]["name"], "persistentVolumeClaim": {"claimName": c["metadata"]["name"]}}
                      for c in d["spec"].get("volumeClaimTemplates", [])]
            template["spec"].setdefault("volumes", []).extend(claims)
            metadata = template.get("metadata", {}) | {"name": d["metadata"]["name"], "namespace": namespace}
            print(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}))


def gateway(path, directory):
    """What the ConfigMap has."""
    (text,) = [d["data"]["gateway.yaml"] for d in documents(path) if "gateway.yaml" in d.get("data", {})]
    for name in ("/etc/slowpath/gateway-tls", "/etc/slowpath/gateway", "/var/lib/otelcol"):
        text = text.replace(name, directory)
    print(text)


if __name__ == "__main__":
    command, first, second = sys.argv[1:]
    if command == "schemas":
        schemas(pathlib.Path(first), pathlib.Path(second))
    elif command == "crd":
        crd(pathlib.Path(first), pathlib.Path(second))
    elif command == "pods":
        pods(pathlib.Path(first), second)
    else:
        gateway(pathlib.Path(first), second)

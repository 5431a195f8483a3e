# The chart and the other manifests: by helm, by kubeconform with the schemas of that Kubernetes, by an API server with
# etcd, and the configuration of the gateway by an OpenTelemetry Collector. There is no kubelet: no pod runs.
assignments=$(scripts/kubernetes) # builds what is missing
eval "$assignments"
otelcol=$(scripts/collector)
k8s=$temporary/kubernetes chart=packaging/helm/slowpath
mkdir -p "$k8s/schemas" "$k8s/api" "$k8s/queue" "$k8s/bin"
helper() { python3 "$here/kubernetes.py" "$@"; }
# rendered NAME ARGUMENT…: what helm makes
rendered() {
	local name=$1
	shift
	# shellcheck disable=SC2154
	"$helm" template slowpath "$chart" --namespace slowpath "$@" >"$k8s/$name.yaml" 2>"$k8s/helm" ||
		{ cat "$k8s/helm"; return 1; }
}
# refused TEXT ARGUMENT…: helm says the text, and fails.
refused() {
	local text=$1
	shift
	not rendered refused "$@" && grep -qF -- "$text" "$k8s/helm"
}

check 'helm lint' "$helm" lint --strict "$chart" --values "$here/kubernetes.yaml"
check 'the defaults' rendered defaults
check 'every part' rendered all --values "$here/kubernetes.yaml"
check 'data that goes with the pod' rendered emptydir --set agent.data.type=emptyDir
check 'a page for all without a token' refused 'set agent.page.secret' --set 'agent.listen=$(HOST_IP):7380'
check 'a collector without TLS' refused 'has no TLS' --set agent.otlp.endpoint=grpc://otel.example:4317
check 'a misspelt value' refused "additional properties 'cpuBugdet' not allowed" --set agent.cpuBugdet=2
check 'kustomize has what the chart makes' scripts/manifests check
for overlay in base overlays/example bench; do
	"$kubectl" kustomize "packaging/kubernetes/$overlay" >"$k8s/kustomize-${overlay##*/}.yaml"
done

# shellcheck disable=SC2154
helper schemas "$schemas" "$k8s/schemas"
# shellcheck disable=SC2154
for crd in $crds; do helper crd "$crd" "$k8s/schemas"; done
conforms() { "$kubeconform" -strict -schema-location "$k8s/schemas/{{.ResourceKind}}{{.KindSuffix}}.json" "$@"; }
check "kubeconform, Kubernetes $kubernetes_version" conforms "$k8s"/{defaults,all,emptydir,kustomize-*}.yaml
sed s/hostPID/hostPid/ "$k8s/defaults.yaml" >"$k8s/misspelt.yaml"
check 'kubeconform finds a misspelt field' says "'hostPid' not allowed" conforms "$k8s/misspelt.yaml"

# The Collector reads the file of the token and the certificate of the gateway.
echo 0123456789abcdef >"$k8s/queue/token"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=gateway \
	-addext subjectAltName=DNS:gateway \
	-keyout "$k8s/queue/tls.key" -out "$k8s/queue/tls.crt" 2>/dev/null
helper gateway "$k8s/all.yaml" "$k8s/queue" >"$k8s/gateway.yaml"
valid() { CLICKHOUSE_USER=u CLICKHOUSE_PASSWORD=p "$otelcol" validate --config "$1"; }
check 'otelcol validate' valid "$k8s/gateway.yaml"
sed s/create_schema/create_schemas/ "$k8s/gateway.yaml" >"$k8s/misspelt-gateway.yaml"
check 'otelcol validate finds a misspelt field' says 'invalid keys: create_schemas' valid "$k8s/misspelt-gateway.yaml"

# An API server with the admission of a cluster, and RBAC.
openssl genrsa -out "$k8s/api/sa.key" 2048 2>/dev/null
echo 'of-the-test,admin,admin,system:masters' >"$k8s/api/tokens"
etcd --data-dir "$k8s/etcd" --listen-client-urls http://127.0.0.1:22379 \
	--advertise-client-urls http://127.0.0.1:22379 \
	--listen-peer-urls http://127.0.0.1:22380 --initial-advertise-peer-urls http://127.0.0.1:22380 \
	--initial-cluster default=http://127.0.0.1:22380 >"$k8s/etcd.log" 2>&1 &
etcd=$!
booted+=($etcd)
# shellcheck disable=SC2154
"$apiserver" --etcd-servers=http://127.0.0.1:22379 --bind-address=127.0.0.1 --secure-port=26443 \
	--cert-dir="$k8s/api" --service-account-issuer=https://kubernetes.default.svc \
	--service-account-key-file="$k8s/api/sa.key" --service-account-signing-key-file="$k8s/api/sa.key" \
	--service-cluster-ip-range=10.0.0.0/24 --authorization-mode=RBAC --token-auth-file="$k8s/api/tokens" \
	--allow-privileged=true >"$k8s/apiserver.log" 2>&1 &
api=$!
booted+=($api)
cat >"$k8s/kubeconfig" <<EOF
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:26443", certificate-authority: $k8s/api/apiserver.crt}}]
users: [{name: u, user: {token: of-the-test}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
EOF
k() { KUBECONFIG=$k8s/kubeconfig "$kubectl" "$@"; }
for _ in $(seq 240); do k get --raw /readyz >/dev/null 2>&1 && break || sleep 0.5; done
check 'the API server is ready' says ok k get --raw /readyz
# space NAME LEVEL: a namespace that enforces it; as there is no controller, the account is made here.
space() {
	k create namespace "$1" && k label namespace "$1" "pod-security.kubernetes.io/enforce=$2" &&
		k create serviceaccount default -n "$1"
}
k apply --server-side -f packaging/kubernetes/base/namespace.yaml >/dev/null
k create serviceaccount default -n slowpath >/dev/null
for level in baseline restricted; do space "$level" "$level" >/dev/null; done
for crd in $crds; do k apply --server-side -f "$crd" >/dev/null; done
k wait --for=condition=Established --timeout=60s crd --all >/dev/null

# takes FILE: the server takes all of it, without a warning.
takes() {
	k apply --server-side --dry-run=server -n slowpath -f "$1" >"$k8s/answer" 2>&1 && not grep -i warning "$k8s/answer"
}
for name in defaults all emptydir kustomize-base kustomize-example kustomize-bench; do
	check "server-side dry run: $name" takes "$k8s/$name.yaml"
done
check 'server-side dry run finds a misspelt field' says 'hostPid: field not declared in schema' \
	k apply --server-side --dry-run=server -n slowpath -f "$k8s/misspelt.yaml"

# PodSecurity judges pods: those that the controllers would make. Their accounts and classes have to be there.
k apply -n slowpath -f "$k8s/all.yaml" >/dev/null
for level in baseline restricted; do
	for account in slowpath-agent slowpath-gateway; do k create serviceaccount $account -n $level >/dev/null; done
	helper pods "$k8s/all.yaml" $level >"$k8s/pods-$level.json"
	helper pods "$k8s/kustomize-bench.yaml" $level >>"$k8s/pods-$level.json"
done
helper pods "$k8s/all.yaml" slowpath >"$k8s/pods-slowpath.json"
# pod LEVEL NAME: the API server's answer to one of them
pod() { jq -c "select(.metadata.name | startswith(\"$2\"))" "$k8s/pods-$1.json" | k create --dry-run=server -f -; }
check 'the agent, privileged' says created pod slowpath slowpath-agent
check 'the agent, baseline: refused' says \
	'violates PodSecurity "baseline:latest"' pod baseline slowpath-agent
check 'the agent, baseline: namespaces' says 'host namespaces (hostNetwork=true, hostPID=true)' \
	pod baseline slowpath-agent
check 'the agent, baseline: capabilities' says 'must not include "BPF", "DAC_READ_SEARCH", "PERFMON", "SYS_PTRACE"' \
	pod baseline slowpath-agent
for name in slowpath-gateway slowpath-schema slowpath-bench slowpath-merge; do
	check "$name, restricted" says created pod restricted $name
done
pod baseline slowpath-agent 2>&1 | sed 's/^/        /' || true

# Rights. can ACCOUNT VERB RESOURCE
can() { k auth can-i "$2" "$3" -n slowpath --as "system:serviceaccount:slowpath:$1" -q; }
for right in 'get pods' 'list nodes' 'get secrets' 'create pods'; do
	# shellcheck disable=SC2086
	check "the agent may not $right" not can slowpath-agent $right
done
for right in 'list pods' 'watch nodes'; do
	# shellcheck disable=SC2086
	check "the gateway may $right" can slowpath-gateway $right
done
for right in 'get secrets' 'delete pods' 'create pods'; do
	# shellcheck disable=SC2086
	check "the gateway may not $right" not can slowpath-gateway $right
done

# The gateway runs, with the rights of its account, and with a file in the place of ClickHouse. An agent is on a node
# whose zone only the API knows.
k create -f - >/dev/null <<'EOF'
{"apiVersion": "v1", "kind": "List", "items": [
  {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1", "labels": {"topology.kubernetes.io/zone": "z-1"}}},
  {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "agent-1", "namespace": "slowpath"}, "spec": {
    "nodeName": "node-1", "containers": [{"name": "slowpath", "image": "slowpath"}]}}]}
EOF
sed "s/of-the-test/$(k create token slowpath-gateway -n slowpath)/" "$k8s/kubeconfig" >"$k8s/kubeconfig-gateway"
cat >"$k8s/to-file.yaml" <<EOF
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:24317"}, http: {endpoint: "127.0.0.1:24318"}}}}
extensions: {health_check: {endpoint: "127.0.0.1:24133"}}
processors: {k8s_attributes: {auth_type: kubeConfig}}
exporters: {file: {path: $k8s/received, flush_interval: 100ms}}
service: {telemetry: {metrics: {level: none}}, pipelines: {logs: {exporters: [file]}}}
EOF
KUBECONFIG=$k8s/kubeconfig-gateway CLICKHOUSE_USER=u CLICKHOUSE_PASSWORD=p "$otelcol" --config "$k8s/gateway.yaml" \
	--config "$k8s/to-file.yaml" >"$k8s/gateway.log" 2>&1 &
gateway=$!
booted+=($gateway)
for _ in $(seq 120); do curl -sf -o /dev/null http://127.0.0.1:24133/ && break || sleep 0.5; done
uid=$(k get pod agent-1 -n slowpath -o jsonpath='{.metadata.uid}')
# pushed TOKEN: the status of the answer to a record that claims to be of another tenant
pushed() {
	curl -s --cacert "$k8s/queue/tls.crt" --connect-to gateway:24318:127.0.0.1:24318 \
		-o /dev/null -w '%{http_code}' -H 'Content-Type: application/json' -H "Authorization: Bearer $1" \
		https://gateway:24318/v1/logs --data-binary @- <<EOF
{"resourceLogs": [{"resource": {"attributes": [{"key": "slowpath.tenant", "value": {"stringValue": "another"}},
  {"key": "k8s.pod.uid", "value": {"stringValue": "$uid"}}]},
  "scopeLogs": [{"logRecords": [{"body": {"stringValue": "x"}}]}]}]}
EOF
}
check 'the gateway takes nothing without its token' says 401 pushed 0123456789abcdeX
check 'the gateway takes what has its token' says 200 pushed 0123456789abcdef
for _ in $(seq 60); do [ -s "$k8s/received" ] && break || sleep 0.2; done
has_attribute() {
	says "$2" jq -r ".resourceLogs[].resource.attributes[] | select(.key == \"$1\").value.stringValue" "$k8s/received"
}
check 'the tenant is that of the gateway' has_attribute slowpath.tenant default
check 'and of no agent' not grep another "$k8s/received"
check 'the zone is that of the node' has_attribute cloud.availability_zone z-1
kill $gateway
wait $gateway 2>/dev/null || true

# The plugin: its pod is that of a node which has no kubelet, so it never begins.
ln -s "$kubectl" "$k8s/bin/kubectl"
plugin() { KUBECONFIG=$k8s/kubeconfig PATH=$k8s/bin:$PWD/packaging/kubernetes:$PATH kubectl slowpath "$@"; }
k create namespace shop >/dev/null
k create serviceaccount default -n shop >/dev/null
k create -f - >/dev/null <<'EOF'
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "redis-0", "namespace": "shop"}, "spec": {"nodeName": "node-1",
  "containers": [{"name": "redis", "image": "redis", "ports": [{"containerPort": 6380}]}]}}
EOF
printed() { plugin redis-0 -n shop --print "$@" | k create --dry-run=server -f -; }
check 'kubectl slowpath: help' says 'kubectl slowpath POD [flags]' plugin --help
check 'kubectl slowpath: no such pod' says 'pods "nowhere" not found' plugin nowhere -n shop
check 'kubectl slowpath: a pod without an address' says 'has no address yet' plugin redis-0 -n shop
k patch pod redis-0 -n shop --subresource=status --type=merge -p '{"status": {"podIP": "10.1.2.3"}}' >/dev/null
check 'kubectl slowpath: its pod' says created printed
check 'kubectl slowpath: the server' says '"doctor", "10.1.2.3:6380", "--for", "30s"' plugin redis-0 -n shop --print
check 'kubectl slowpath: flags of doctor' says '"--for", "30s", "--text", "a \"b\""]' \
	plugin redis-0 -n shop --print -- --text 'a "b"'
check 'kubectl slowpath: a namespace that is not privileged' says 'violates PodSecurity' \
	plugin redis-0 -n shop --in restricted --image slowpath
check 'kubectl slowpath: no names' says 'is no such name' plugin 'redis-0"' -n shop
doctors() { k get pod -n slowpath -l app.kubernetes.io/component=doctor -o name; }
# Somebody deletes its pod while it waits: it says so, and nothing is left.
gone() {
	plugin redis-0 -n shop &
	local it=$! made=
	until made=$(doctors) && [ -n "$made" ]; do sleep 0.2; done
	k delete -n slowpath "$made" --force --grace-period=0
	not wait $it && [ -z "$(doctors)" ]
}
check 'kubectl slowpath: its pod is deleted' says 'its pod is gone' gone

kill $api
wait $api 2>/dev/null || true
kill $etcd
wait $etcd 2>/dev/null || true

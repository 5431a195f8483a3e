{{- define "slowpath.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "slowpath.labels" -}}
app.kubernetes.io/name: slowpath
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* of (list . "agent"): what selects the pods of a part */}}
{{- define "slowpath.selector" -}}
{{- $top := index . 0 -}}
app.kubernetes.io/name: slowpath
app.kubernetes.io/instance: {{ $top.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "slowpath.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- define "slowpath.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* where agents push to; empty: nowhere */}}
{{- define "slowpath.otlp" -}}
{{- if .Values.agent.otlp.endpoint }}{{ .Values.agent.otlp.endpoint }}
{{- else if .Values.gateway.enabled }}
{{- printf "%s://%s-gateway.%s.svc:4317" (ternary "grpcs" "grpc" (ne .Values.gateway.tlsSecret ""))
  (include "slowpath.name" .) .Release.Namespace }}
{{- end }}
{{- end }}

{{- define "slowpath.otlpSecret" -}}
{{- .Values.agent.otlp.secret | default (ternary .Values.gateway.secret "" .Values.gateway.enabled) }}
{{- end }}

{{/* of a pod that needs nothing of the node */}}
{{- define "slowpath.ordinary" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

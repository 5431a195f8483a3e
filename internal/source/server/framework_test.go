package server

import "testing"

func TestFrameworkOf(t *testing.T) {
	for _, tt := range []struct {
		command string
		args    []string
		want    string
	}{
		{"KEYS", []string{"KEYS", "prices::*"}, "Spring Cache"},
		{"KEYS", []string{"KEYS", "spring:session:sessions:*"}, "Spring Session"},
		{"KEYS", []string{"keys", "flask_cache_*"}, "Flask-Caching"},
		{"SCAN", []string{"SCAN", "0", "MATCH", ":1:views*", "COUNT", "10"}, "Django"},
		{"SCAN", []string{"SCAN", "0", "COUNT", "10", "match", "sess:*"}, "connect-redis"},
		{"SCAN", []string{"SCAN", "sess:0"}, "connect-redis"}, // no cursor, and no harm
		{"SCAN", []string{"SCAN", "0", "MATCH"}, ""},
		{"SMEMBERS", []string{"SMEMBERS", "_kombu.binding.celery"}, "Celery"},
		{"KEYS", []string{"KEYS", "*"}, ""},
		{"KEYS", []string{"KEYS", "user:*"}, ""},
		{"KEYS", []string{"KEYS"}, ""},
		{"CONFIG", []string{"CONFIG", "laravel_"}, ""},
	} {
		if got := frameworkOf(tt.command, args(tt.args...).Elems); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.args, got, tt.want)
		}
	}
}

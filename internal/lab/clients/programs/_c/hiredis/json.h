/* Reads the options of docs/clients.md: one line of JSON. Values live until the program ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum json_kind { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_LIST, JSON_OBJECT };

struct json {
	enum json_kind kind;
	double number;
	char *name, *string;       /* name: of a member of an object */
	struct json *first, *next; /* first: of a list or an object */
};

#define JSON_DEPTH 16

static const char *json_space(const char *p)
{
	return p + strspn(p, " \t\r\n");
}

static char *json_put(char *to, unsigned code)
{
	if (code < 0x80) {
		*to++ = (char)code;
	} else if (code < 0x800) {
		*to++ = (char)(0xc0 | code >> 6);
		*to++ = (char)(0x80 | (code & 0x3f));
	} else {
		*to++ = (char)(0xe0 | code >> 12);
		*to++ = (char)(0x80 | (code >> 6 & 0x3f));
		*to++ = (char)(0x80 | (code & 0x3f));
	}
	return to;
}

/* Each returns what follows the value, or NULL if it is no value. */
static const char *json_string(const char *p, char **out)
{
	static const char escapes[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
	char *to = *out = malloc(strlen(p) + 1);

	if (!to || *p++ != '"')
		return NULL;
	while (*p && *p != '"') {
		const char *escape;
		unsigned code;

		if (*p != '\\') {
			*to++ = *p++;
			continue;
		}
		if (*++p == 'u' && sscanf(p + 1, "%4x", &code) == 1 && strlen(p) > 4) {
			to = json_put(to, code);
			p += 5;
		} else if (*p && (escape = strchr(escapes, *p))) {
			*to++ = values[escape - escapes];
			p++;
		} else {
			return NULL;
		}
	}
	*to = 0;
	return *p ? p + 1 : NULL;
}

static const char *json_value(const char *p, struct json *v, int depth);

static const char *json_members(const char *p, struct json *v, char end, int depth)
{
	struct json **last = &v->first;

	for (p = json_space(p); *p && *p != end; p = json_space(p)) {
		struct json *member = calloc(1, sizeof(*member));

		if (!member)
			return NULL;
		if (v->first) {
			if (*p != ',')
				return NULL;
			p = json_space(p + 1);
		}
		if (end == '}') {
			p = json_string(p, &member->name);
			if (!p || *(p = json_space(p)) != ':')
				return NULL;
			p++;
		}
		p = json_value(p, member, depth + 1);
		if (!p)
			return NULL;
		*last = member;
		last = &member->next;
	}
	return *p ? p + 1 : NULL;
}

static const char *json_value(const char *p, struct json *v, int depth)
{
	static const char *words[] = {"null", "false", "true"};
	char *end;

	p = json_space(p);
	if (depth > JSON_DEPTH)
		return NULL;
	for (int i = 0; i < 3; i++) {
		if (!strncmp(p, words[i], strlen(words[i]))) {
			v->kind = (enum json_kind)i;
			return p + strlen(words[i]);
		}
	}
	switch (*p) {
	case '"':
		v->kind = JSON_STRING;
		return json_string(p, &v->string);
	case '[':
		v->kind = JSON_LIST;
		return json_members(p + 1, v, ']', depth);
	case '{':
		v->kind = JSON_OBJECT;
		return json_members(p + 1, v, '}', depth);
	}
	v->kind = JSON_NUMBER;
	v->number = strtod(p, &end);
	return end == p ? NULL : end;
}

/* Returns a member of an object, or NULL. */
static const struct json *json_get(const struct json *object, const char *name)
{
	const struct json *m = object->kind == JSON_OBJECT ? object->first : NULL;

	while (m && strcmp(m->name, name))
		m = m->next;
	return m;
}

static double json_number(const struct json *object, const char *name)
{
	const struct json *m = json_get(object, name);

	return m && m->kind == JSON_NUMBER ? m->number : 0;
}

static int json_true(const struct json *object, const char *name)
{
	const struct json *m = json_get(object, name);

	return m && m->kind == JSON_TRUE;
}

static const char *json_text(const struct json *object, const char *name)
{
	const struct json *m = json_get(object, name);

	return m && m->kind == JSON_STRING ? m->string : "";
}

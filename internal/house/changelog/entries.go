package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// kinds of changes, in the order of a version (https://keepachangelog.com).
var kinds = []string{"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}

const maxColumns = 120

// entry is a change that is not released yet: a file of changelog/unreleased.
type entry struct {
	path, kind, text string
}

var (
	fileName  = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*\.md$`)
	firstLine = regexp.MustCompile(`^([A-Z][a-z]+): (.*[^.\s])$`)
)

// readEntries reads the entries of a folder, and gives what is wrong with them.
func readEntries(dir string) (entries []entry, problems []string, err error) {
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) { // all are released: Git keeps no empty folder
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, nil, err
		}
		e, err := parse(f.Name(), string(text))
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", path, err))
			continue
		}
		e.path = path
		entries = append(entries, e)
	}
	return entries, problems, nil
}

// parse reads an entry: "KIND: sentence", and below an empty line what else there is to say.
func parse(name, text string) (entry, error) {
	if !fileName.MatchString(name) {
		return entry{}, fmt.Errorf("the name is not words-of-the-change.md")
	}
	first, rest, _ := strings.Cut(strings.TrimSuffix(text, "\n"), "\n")
	m := firstLine.FindStringSubmatch(first)
	switch {
	case m == nil:
		return entry{}, fmt.Errorf("the first line is not KIND: sentence, without a full stop")
	case !slices.Contains(kinds, m[1]):
		return entry{}, fmt.Errorf("%s is none of %s", m[1], strings.Join(kinds, ", "))
	case rest != "" && (rest[0] != '\n' || strings.TrimSpace(rest) == ""):
		return entry{}, fmt.Errorf("the second line is not empty, or nothing follows it")
	}
	for line := range strings.Lines(text) {
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > maxColumns {
			return entry{}, fmt.Errorf("a line has more than %d columns", maxColumns)
		}
		if strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "* ") || strings.HasPrefix(line, "#") {
			return entry{}, fmt.Errorf("it has a list or a heading: write sentences")
		}
	}
	return entry{kind: m[1], text: strings.TrimSpace(m[2] + ". " + strings.Join(strings.Fields(rest), " "))}, nil
}

// version gives the section of CHANGELOG.md.
func version(name, date string, entries []entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## [%s] - %s\n", name, date)
	for _, kind := range kinds {
		heading := "\n### " + kind + "\n"
		for _, e := range entries {
			if e.kind == kind {
				b.WriteString(heading + item(e.text))
				heading = ""
			}
		}
	}
	return b.String()
}

// item is a text as an item of a list.
func item(text string) string {
	var b strings.Builder
	line := "-"
	for word := range strings.FieldsSeq(text) {
		if utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > maxColumns {
			b.WriteString(line + "\n")
			line = " "
		}
		line += " " + word
	}
	return b.String() + line + "\n"
}

// insert puts a version above the newest one.
func insert(changelog, section string) (string, error) {
	head, versions, found := strings.Cut(changelog, "\n## ")
	if !found {
		return "", fmt.Errorf("CHANGELOG.md has no version")
	}
	return head + "\n" + section + "\n## " + versions, nil
}

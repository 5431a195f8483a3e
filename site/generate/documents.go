package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// link is one of Markdown, [text](target).
var link = regexp.MustCompile(`\[([^\]\n]+(?:\n[^\]\n]+)?)\]\(([^)\s]+)\)`)

// copyDocuments copies the documents of the repository. Links to the causes go to their pages, and links to files that
// are not part of the site lose their target.
func copyDocuments(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil || name == "causes.md" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if filepath.Ext(path) == ".md" {
			up := strings.Repeat("../", strings.Count(filepath.ToSlash(name), "/")+1) // to the root of the site
			text = link.ReplaceAllFunc(text, func(whole []byte) []byte { return relink(whole, up) })
		}
		return write(filepath.Join(to, name), text)
	})
}

// relink gives a link of a document the target that it has on the site.
func relink(whole []byte, up string) []byte {
	m := link.FindSubmatch(whole)
	words, target := m[1], string(m[2])
	file, anchor, _ := strings.Cut(target, "#")
	switch {
	case strings.Contains(target, "://"):
		return whole
	case strings.TrimPrefix(file, "../") == "causes.md" && anchor == "":
		return fmt.Appendf(nil, "[%s](%scauses/index.md)", words, up)
	case strings.TrimPrefix(file, "../") == "causes.md":
		return fmt.Appendf(nil, "[%s](%scauses/%s.md)", words, up, anchor)
	case strings.HasSuffix(file, "README.md"):
		return fmt.Appendf(nil, "[%s](%sstart.md)", words, up)
	case strings.HasPrefix(file, up):
		return words
	}
	return whole
}

// placeholder is a line that stands for the verdict of a cause: <!-- verdict: CAUSE -->.
var placeholder = regexp.MustCompile(`(?m)^<!-- verdict: ([a-z0-9-]+) -->$`)

// copyPages copies what was written for the site, with verdicts in the places that ask for one.
func copyPages(from, to string, verdicts map[string]verdict) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var missing []string
		text = placeholder.ReplaceAllFunc(text, func(line []byte) []byte {
			id := string(placeholder.FindSubmatch(line)[1])
			v, ok := verdicts[id]
			if !ok {
				missing = append(missing, id)
			}
			return []byte(preformatted(v.text))
		})
		if len(missing) > 0 {
			return fmt.Errorf("%s: no verdict of %s", path, strings.Join(missing, ", "))
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if filepath.Ext(path) == ".md" {
			text = link.ReplaceAllFunc(text, relinkPage)
		}
		return write(filepath.Join(to, name), text)
	})
}

// relinkPage gives a link to a document, in a page that was written for the site, the target that it has there.
func relinkPage(whole []byte) []byte {
	m := link.FindSubmatch(whole)
	document, ok := strings.CutPrefix(string(m[2]), "../../docs/")
	if !ok {
		return whole
	}
	if strings.HasPrefix(document, "causes.md") {
		return relink(fmt.Appendf(nil, "[%s](%s)", m[1], document), "")
	}
	return fmt.Appendf(nil, "[%s](reference/%s)", m[1], document)
}

func write(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

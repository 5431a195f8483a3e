package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// maxSuggestions are named in an error, at most.
const maxSuggestions = 4

// DidYouMean names what is spelled about as a word: " (did you mean A or B?)"; empty where nothing is.
func DidYouMean(word string, known []string) string {
	return meant(similar(word, known))
}

func meant(near []string) string {
	if len(near) == 0 {
		return ""
	}
	more := ""
	if len(near) > maxSuggestions {
		near, more = near[:maxSuggestions], ", ..."
	}
	return " (did you mean " + strings.Join(near, " or ") + more + "?)"
}

// similar are the known words that begin with a word, or are spelled about as it, as cobra compares commands; else
// those of the same letters, and those that have it as a part.
func similar(word string, known []string) (near []string) {
	if word == "" {
		return nil
	}
	all := &cobra.Command{SuggestionsMinimumDistance: distance(word)}
	for _, k := range known {
		all.AddCommand(&cobra.Command{Use: k, Run: func(*cobra.Command, []string) {}})
	}
	if near = all.SuggestionsFor(word); len(near) > 0 {
		return near
	}
	for _, k := range known {
		if len(word) >= leastPart && strings.Contains(k, strings.ToLower(word)) || letters(k) == letters(word) {
			near = append(near, k)
		}
	}
	return near
}

// letters are those of a word in alphabetical order: of "for" and "fro" the same.
func letters(word string) string {
	all := []rune(strings.ToLower(word))
	slices.Sort(all)
	return string(all)
}

// leastPart is the length from which a part of a word says which word was meant.
const leastPart = 4

// distance is by how many characters a word may differ from the one that was meant: two, of short words one.
func distance(word string) int {
	if len(word) < leastPart {
		return 1
	}
	return 2
}

// Command figures updates the README's table of figures, the last column of its map, GOALS.md and
// docs/scale.md from the report of internal/bench:
//
//	go run ./internal/house/figures
//
// Run it in the root of the repository after each new report. A test of this package fails if these
// pages differ from the report, so no figure can be outdated or typed by hand.
package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	reportName = "internal/bench/REPORT.md"
	readmeName = "README.md"
	goalsName  = "internal/bench/GOALS.md"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

func run() error {
	report, err := os.ReadFile(reportName)
	if err != nil {
		return err
	}
	readme, err := os.ReadFile(readmeName)
	if err != nil {
		return err
	}
	sections := sectionsOf(string(report))
	made, err := update(string(readme), sections)
	if err != nil {
		return err
	}
	page, err := makeGoals(sections)
	if err != nil {
		return err
	}
	scale, err := makeScale(sections)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(readmeName, []byte(made), 0o644), os.WriteFile(goalsName, []byte(page), 0o644),
		os.WriteFile(scaleName, []byte(scale), 0o644))
}

// sectionsOf returns the sections of a report by title.
func sectionsOf(report string) map[string]string {
	sections := map[string]string{}
	for _, section := range strings.Split(report, "\n## ")[1:] {
		title, text, _ := strings.Cut(section, "\n")
		sections[title] = text
	}
	return sections
}

// update returns the README with the figures of a report.
func update(readme string, sections map[string]string) (string, error) {
	readme, err := replaceTable(readme, sections)
	if err != nil {
		return "", err
	}
	return replaceMap(readme, sections[sizes])
}

var (
	mapRow  = regexp.MustCompile("(?m)^(\\| \\[`([a-z]+)`\\].* \\| ).* \\|$")
	sizeRow = regexp.MustCompile(`(?m)^([a-z/]+)  +(\S+(?:, \S+)*)  +(\d+)  +([\d.]+ MB)$`)
)

// replaceMap returns the README with the dependencies and sizes of packages.
func replaceMap(readme, measured string) (string, error) {
	costs := map[string]string{}
	for _, row := range sizeRow.FindAllStringSubmatch(measured, -1) {
		costs[row[1]] = row[2] + "; " + row[4]
		if row[2] != "none" {
			costs[row[1]] = fmt.Sprintf("%s packages of %s; %s", row[3], row[2], row[4])
		}
	}
	rows := mapRow.FindAllStringSubmatch(readme, -1)
	if len(rows) == 0 {
		return "", fmt.Errorf("%s has no map", readmeName)
	}
	for _, row := range rows {
		cost, ok := costs[row[2]]
		if !ok {
			return "", fmt.Errorf("%s: section %q lacks package %s", reportName, sizes, row[2])
		}
		readme = strings.Replace(readme, row[0], row[1]+cost+" |", 1)
	}
	return readme, nil
}

// tableHead starts the table, and an empty line ends it.
const tableHead = "| | ours | others |\n| --- | --- | --- |\n"

// replaceTable returns the README with the table of figures.
func replaceTable(readme string, sections map[string]string) (string, error) {
	before, rest, found := strings.Cut(readme, tableHead)
	if !found {
		return "", fmt.Errorf("%s has no table that begins with %q", readmeName, tableHead)
	}
	_, after, found := strings.Cut(rest, "\n\n")
	if !found {
		return "", fmt.Errorf("%s: no empty line ends the table", readmeName)
	}
	table, err := makeTable(sections)
	return before + tableHead + table + "\n" + after, err
}

// makeTable returns the rows of the table.
func makeTable(sections map[string]string) (string, error) {
	var table strings.Builder
	for _, r := range rows {
		values := make([]any, len(r.figures))
		for i, f := range r.figures {
			value, err := f.in(sections)
			if err != nil {
				return "", fmt.Errorf("%s: row %q: %w", reportName, r.question, err)
			}
			values[i] = format(value, 2)
		}
		fmt.Fprintf(&table, "| "+r.question+" | "+r.answers+" |\n", values...)
	}
	return table.String(), nil
}

// in returns the median of a figure's measurements, in the unit of the table.
func (f figure) in(sections map[string]string) (float64, error) {
	var measured []float64
	for _, match := range f.line.FindAllStringSubmatch(sections[f.section], -1) {
		value, err := strconv.ParseFloat(match[1], 64)
		if err != nil {
			return 0, fmt.Errorf("section %q: %w", f.section, err)
		}
		measured = append(measured, value*f.scale)
	}
	if len(measured) == 0 {
		return 0, fmt.Errorf("section %q: nothing matches %q", f.section, f.line)
	}
	slices.Sort(measured)
	return measured[len(measured)/2], nil
}

var thousand = regexp.MustCompile(`(\d)(\d{3})(,|$)`)

// format formats a figure with the given number of significant digits, and commas between
// thousands.
func format(value float64, digits int) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(value, 'g', digits, 64), 64)
	if err != nil {
		return err.Error() // FormatFloat writes what ParseFloat reads
	}
	text := strconv.FormatFloat(rounded, 'f', -1, 64)
	for grouped := ""; text != grouped && !strings.Contains(text, "."); {
		grouped, text = text, thousand.ReplaceAllString(text, "$1,$2$3")
	}
	return text
}

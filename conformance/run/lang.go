package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Language is one folder of hosts, as its lang.yaml describes it. In commands
// {tmp} stands for a directory of this run, {cache} for one that is kept from
// run to run.
type Language struct {
	Dir   string `yaml:"-"`
	Key   string `yaml:"-"` // the folder's name; with an older SDK its version behind it
	Cache string `yaml:"-"`
	Name  string `yaml:"name"`
	// Needs are the programs that must be on the PATH.
	Needs []string `yaml:"needs"`
	// Setup are the commands that fetch the SDK and build the host.
	Setup [][]string `yaml:"setup"`
	// SetupUnless names a file that setup makes: where it is newer than every
	// file listed in SetupFrom, setup is left out.
	SetupUnless string   `yaml:"setup_unless"`
	SetupFrom   []string `yaml:"setup_from"`
	Host        []string `yaml:"host"`
	Example     []string `yaml:"example"`
	// Programs are hand-written hosts of their own, such as "remote", by the name
	// that a case has under over; where one is missing its case is not run.
	Programs map[string][]string `yaml:"programs"`
	// Lacks holds what this SDK cannot express (features.go) and why. Cases that
	// need it are not run.
	Lacks map[string]string `yaml:"lacks"`
	// Unseen names fields of events that this SDK's types drop, by event type.
	// They are not compared.
	Unseen map[string][]string `yaml:"unseen"`
	// Absent is what setup writes where the registry at hand does not have this
	// version, as a regular expression; the language is then "not run".
	Absent string `yaml:"absent"`
	// Refused is set for an SDK that speaks another protocol: its example must
	// end with an error that this text describes, and no case is played.
	Refused string `yaml:"refused"`
}

// loadLanguages reads conformance/*/lang.yaml, all or the ones asked for.
func loadLanguages(root string, only []string) ([]*Language, error) {
	cache := filepath.Join(root, ".cache")
	files, err := filepath.Glob(filepath.Join(root, "*", "lang.yaml"))
	if err != nil {
		return nil, err
	}
	var langs []*Language
	for _, file := range files {
		lang := &Language{Dir: filepath.Dir(file), Key: filepath.Base(filepath.Dir(file)), Cache: cache}
		if len(only) > 0 && !slices.Contains(only, lang.Key) {
			continue
		}
		if err := lang.read(file); err != nil {
			return nil, err
		}
		langs = append(langs, lang)
	}
	for _, key := range only {
		if !slices.ContainsFunc(langs, func(l *Language) bool { return l.Key == key }) {
			return nil, fmt.Errorf("there is no %s with a lang.yaml", filepath.Join(root, key))
		}
	}
	return langs, nil
}

// read fills the fields that a lang.yaml names and leaves the others.
func (l *Language) read(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(text, l); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// missing returns the first program the machine lacks, or "".
func (l *Language) missing() string {
	for _, program := range l.Needs {
		if _, err := exec.LookPath(program); err != nil {
			return program
		}
	}
	return ""
}

// command makes one of the language's commands.
func (l *Language) command(ctx context.Context, tmp string, args []string) *exec.Cmd {
	args = slices.Clone(args)
	places := strings.NewReplacer("{tmp}", tmp, "{cache}", l.Cache)
	for i := range args {
		args[i] = places.Replace(args[i])
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = l.Dir
	ownGroup(cmd)
	return cmd
}

// errAbsent says that a version cannot be had from the registry at hand.
var errAbsent = errors.New("the package registry at hand does not have this version")

// prepare runs the setup commands where they are due.
func (l *Language) prepare(ctx context.Context, tmp string) error {
	if l.upToDate() {
		return nil
	}
	for _, args := range l.Setup {
		out, err := l.command(ctx, tmp, args).CombinedOutput()
		if err != nil {
			if l.Absent != "" && textMatches("~"+l.Absent, string(out)) {
				return errAbsent
			}
			if len(out) > 2000 {
				out = out[:2000]
			}
			return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}

func (l *Language) upToDate() bool {
	if l.SetupUnless == "" {
		return false
	}
	made, err := os.Stat(filepath.Join(l.Dir, l.SetupUnless))
	if err != nil {
		return false
	}
	for _, from := range l.SetupFrom {
		info, err := os.Stat(filepath.Join(l.Dir, from))
		if errors.Is(err, os.ErrNotExist) || (err == nil && info.ModTime().After(made.ModTime())) {
			return false
		}
	}
	return true
}

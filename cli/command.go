package cli

import (
	"context"
	_ "embed" // the texts of the commands
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"superstep.dev/cli/screen"
)

// text is what help says of a command.
type text struct {
	// Args are the command's arguments: those in brackets, which come last, may be left out.
	Args         string
	Short, About string
	// More names a text that follows About, which several commands have.
	More string
	// Example are command lines without the program's name.
	Example string
	// Exits end the help of a program.
	Exits string
}

//go:embed commands.yaml
var commandTexts []byte

// texts are those of all commands, by their words: "job plan".
var texts = sync.OnceValue(func() (all map[string]text) {
	if err := yaml.Unmarshal(commandTexts, &all); err != nil {
		panic(err) // it is part of this program, and tested
	}
	return all
})

// command describes one command; build makes the cobra command of it.
type command struct {
	// name are the words that it is called by, under which commands.yaml has its text.
	name string
	// complete are the possible values of the first argument; without them a server is asked.
	complete []string
	flags    func(flags *pflag.FlagSet)
	// ownChecks says that run checks the arguments itself. Otherwise they are checked by their names, see argumentChecks.
	ownChecks bool
	// run gets all arguments: "" for one that was left out.
	run func(ctx context.Context, args []string) error
}

func (a *app) build(c command) *cobra.Command {
	help := texts()[c.name]
	names := strings.Fields(help.Args)
	var lines []string
	for line := range strings.Lines(help.Example) {
		lines = append(lines, "  "+strings.TrimSpace(a.program+" "+a.ownWords(line)))
	}
	cmd := &cobra.Command{
		Use:               strings.TrimSpace(c.name[strings.LastIndex(c.name, " ")+1:] + " " + help.Args),
		Short:             help.Short,
		Long:              strings.TrimSpace(help.Short + ".\n\n" + a.about(help)),
		Example:           strings.Join(lines, "\n"),
		Args:              positional(names),
		ValidArgsFunction: a.complete(names, c.complete),
		RunE: func(cmd *cobra.Command, args []string) error {
			args = append(args, make([]string, len(names)-len(args))...)
			a.parsed = true
			if err := checkUTF8(cmd.Flags(), names, args); err != nil {
				return err
			}
			if !c.ownChecks {
				if err := checkArguments(names, args); err != nil {
					return err
				}
			}
			return c.run(cmd.Context(), args)
		},
	}
	cmd.Flags().SortFlags = false
	if c.flags != nil {
		c.flags(cmd.Flags())
	}
	return cmd
}

// about is what help says of a command behind the first line, with this program's name.
func (a *app) about(help text) string {
	about := strings.TrimSpace(help.About + "\n" + texts()[help.More].About)
	return strings.ReplaceAll(about, "{program}", a.program)
}

// parent makes a command that only has others below it.
func (a *app) parent(name string) *cobra.Command {
	cmd := a.build(command{name: name})
	cmd.Args, cmd.SuggestionsMinimumDistance = unknownCommand, 2
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}

// ownWords are the words of an example in a program that has graphs of its own: the first of these stands for the
// refund graph, one of its nodes for that graph's, and a file for an input that nobody but the graph knows.
func (a *app) ownWords(example string) string {
	const graph, node = "refund", "commit_refund"
	if _, has := a.graph(graph); has || len(a.graphs) == 0 {
		return example
	}
	own := a.graphs[0]
	last := node
	if nodes := own.Adapter().Spec.Nodes; len(nodes) > 0 {
		last = nodes[len(nodes)-1].Name
	}
	return strings.NewReplacer(node, last, graph, own.Name(),
		`'{"order_id":"o-7"}'`, "@input.json", `'{"order_id":"o-8"}'`, "@input.json", "order.json", "input.json").Replace(example)
}

// positional checks the number of arguments and says which one is missing or too much.
func positional(names []string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > len(names) {
			return usagef("unexpected argument %s", quoted(args[len(names)]))
		}
		for _, name := range names[len(args):] {
			if !strings.HasPrefix(name, "[") {
				return usagef("%s is missing", name)
			}
		}
		return nil
	}
}

// unknownCommand refuses words that are no command, and names the one that may have been meant.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	message := fmt.Sprintf("there is no command %s", quoted(args[0]))
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		message += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return usagef("%s", message)
}

// badValue says what is wrong with a flag's value, in words that follow the flag's name.
type badValue string

// Error implements error.
func (b badValue) Error() string { return string(b) }

// flagError says in the user's terms what is wrong with a flag.
func flagError(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return wrongUse(err)
	}
	flag := invalid.GetFlag()
	var bad badValue
	if errors.As(err, &bad) {
		return usagef("--%s %v", flag.Name, bad)
	}
	wanted := map[string]string{
		"int":      "a whole number",
		"bool":     "true or false",
		"duration": "a duration, for instance 30s or 2m",
	}[flag.Value.Type()]
	if wanted == "" {
		return wrongUse(err)
	}
	return usagef("--%s %s is not %s", flag.Name, quoted(invalid.GetValue()), wanted)
}

// once makes the flags of a command that take one value refuse a second one that differs: nobody can tell which of the two
// was meant. The flags of the connection and --output are left as they are: a script sets them, and its user overrides them.
func once(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if _, many := f.Value.(pflag.SliceValue); !many {
			f.Value = &onceValue{Value: f.Value}
			if f.DefValue == "0s" { // help names no default that is zero, which it tells by the value's own type
				f.DefValue = "0"
			}
		}
	})
}

// onceValue is a flag's value that is given once.
type onceValue struct {
	pflag.Value
	given []string
}

// Set implements pflag.Value.
func (v *onceValue) Set(text string) error {
	if v.given = append(v.given, text); v.given[0] != text {
		return badValue("is given twice, as " + quoted(v.given[0]) + " and as " + quoted(text))
	}
	return v.Value.Set(text)
}

// choice is a flag's value that is one of a few. Without a default it may be empty too.
type choice[Text ~string] struct {
	to    *Text
	among []Text
	usual Text
}

// choiceVar declares a flag that takes one of a few values.
func choiceVar[Text ~string](flags *pflag.FlagSet, to *Text, name string, usual Text, among []Text, usage string) {
	*to = usual
	flags.Var(&choice[Text]{to, among, usual}, name, usage)
}

// String implements pflag.Value.
func (c *choice[Text]) String() string { return string(*c.to) }

// Type implements pflag.Value.
func (c *choice[Text]) Type() string { return "string" }

// Set implements pflag.Value.
func (c *choice[Text]) Set(text string) error {
	err := c.check(Text(text))
	if err == nil || text == "" && c.usual == "" {
		*c.to, err = Text(text), nil
	}
	return err
}

func (c *choice[Text]) check(text Text) error {
	if slices.Contains(c.among, text) {
		return nil
	}
	return badValue(quoted(string(text)) + " is unknown; it is " + screen.OneOf(c.among))
}

// completions are the values that Tab suggests.
func (c *choice[Text]) completions() []cobra.Completion {
	all := make([]cobra.Completion, len(c.among))
	for i, text := range c.among {
		all[i] = string(text)
	}
	return all
}

// Command cel-oracle answers questions about CEL expressions with the very modules that Kubernetes v1.36.4 is
// linked from. One JSON object per line in, one per line out, in the same order. See README.md.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

// query is one question. Which members count is said by env; see README.md.
type query struct {
	ID     any    `json:"id,omitempty"`
	Env    string `json:"env"`
	Expr   string `json:"expr"`
	Stored bool   `json:"stored,omitempty"`
	Compat string `json:"compat,omitempty"`
	Limit  uint64 `json:"limit,omitempty"`
	Detail bool   `json:"detail,omitempty"`

	// Vars declares variables: name to type text. Bind gives JSON values, Let gives values as CEL expressions.
	Vars map[string]string `json:"vars,omitempty"`
	Bind map[string]any    `json:"bind,omitempty"`
	Let  map[string]string `json:"let,omitempty"`

	// Returns is what upstream's compiler of this place demands: names of types.
	Returns []string `json:"returns,omitempty"`

	Schema          json.RawMessage `json:"schema,omitempty"`
	Root            bool            `json:"root,omitempty"`
	OptionalOldSelf bool            `json:"optionalOldSelf,omitempty"`
	Self            any             `json:"self,omitempty"`
	OldSelf         any             `json:"oldSelf,omitempty"`

	Params     bool       `json:"params,omitempty"`
	Authorizer bool       `json:"authorizer,omitempty"`
	Patch      bool       `json:"patch,omitempty"`
	Variables  []variable `json:"variables,omitempty"`

	// Decisions is what the authorizer behind `authorizer` and `authorizer.requestResource` answers; first match.
	Decisions []decision `json:"decisions,omitempty"`

	Features []string        `json:"features,omitempty"`
	Device   json.RawMessage `json:"device,omitempty"`
	Policy   json.RawMessage `json:"policy,omitempty"`
	Review   json.RawMessage `json:"review,omitempty"`
	Kind     string          `json:"kind,omitempty"`
	CRD      json.RawMessage `json:"crd,omitempty"`
	OldCRD   json.RawMessage `json:"oldCrd,omitempty"`
}

type variable struct {
	Name       string `json:"name"`
	Expression string `json:"expression"`
}

// answer is what came out. Errors and AST texts are upstream's own, to the letter.
type answer struct {
	ID       any        `json:"id,omitempty"`
	Bad      string     `json:"bad,omitempty"`
	Errors   string     `json:"errors,omitempty"`
	Compile  string     `json:"compile,omitempty"`
	Type     string     `json:"type,omitempty"`
	AST      string     `json:"ast,omitempty"`
	Checked  string     `json:"checked,omitempty"`
	Parsed   string     `json:"parsed,omitempty"`
	Prog     string     `json:"program,omitempty"`
	Est      *[2]uint64 `json:"est,omitempty"`
	EstErr   string     `json:"estErr,omitempty"`
	Cost     *uint64    `json:"cost,omitempty"`
	Value    string     `json:"value,omitempty"`
	Result   any        `json:"result,omitempty"`
	RType    string     `json:"rtype,omitempty"`
	Err      string     `json:"err,omitempty"`
	Warnings any        `json:"warnings,omitempty"`
	Matches  *bool      `json:"matches,omitempty"`
}

func main() {
	if len(os.Args) > 1 {
		command(os.Args[1], os.Args[2:])
		return
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 256<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<16)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for in.Scan() {
		if err := encoder.Encode(answerLine(in.Text())); err != nil {
			fmt.Fprintln(os.Stderr, "cannot write the answer:", err)
			os.Exit(1)
		}
		// Asked by a program that waits for each answer, or by one that writes all questions at once.
		if err := out.Flush(); err != nil {
			os.Exit(1)
		}
	}
	if err := in.Err(); err != nil {
		fmt.Fprintln(os.Stderr, "cannot read a question:", err)
		os.Exit(1)
	}
}

func command(name string, args []string) {
	switch name {
	case "dump":
		dump()
	case "bench":
		bench()
	case "extract":
		extract(args)
	default:
		fmt.Fprintf(os.Stderr, "unknown command %q: dump, bench, extract FOLDER…, or nothing to answer questions\n", name)
		os.Exit(2)
	}
}

func answerLine(line string) (a answer) {
	var q query
	if err := decodeNumbers([]byte(line), &q); err != nil {
		return answer{Bad: "cannot read the question: " + err.Error()}
	}
	a.ID = q.ID
	defer func() {
		if r := recover(); r != nil {
			a = answer{ID: q.ID, Bad: fmt.Sprintf("panic: %v", r)}
		}
	}()
	switch q.Env {
	case "typecheck":
		typecheck(&q, &a)
	case "crd-define":
		defineCRD(&q, &a)
	case "crd-object":
		validateObject(&q, &a)
	default:
		ask(&q, &a)
	}
	return a
}

// decodeNumbers keeps numbers as written, for integers.
func decodeNumbers(line []byte, q *query) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	return d.Decode(q)
}

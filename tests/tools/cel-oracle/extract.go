package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Folders whose tests are about expressions.
var extracted = []string{"cel", "policy", "matchconditions", "apiextensions/validation", "apis/apiserver/validation", "test/integration"}

// Longer texts are objects, not expressions.
const longestExtracted = 20_000

// extract prints every text in the tests below the folders, once each, as {"expr": …, "from": …}. Which of them are
// expressions is not asked: what is none has syntax errors, and these must be the same, too.
func extract(roots []string) {
	seen := map[string]bool{}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") || !concernsExpressions(path[len(root):], root) {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			from := filepath.Base(filepath.Dir(path)) + "/" + filepath.Base(path)
			for _, text := range textsOf(file) {
				if text == "" || len(text) > longestExtracted || seen[text] {
					continue
				}
				seen[text] = true
				if err := out.Encode(map[string]string{"expr": text, "from": from}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, "cannot read tests:", err)
			os.Exit(1)
		}
	}
}

func concernsExpressions(path, root string) bool {
	if strings.Contains(root, "cel-go") {
		return true
	}
	for _, part := range extracted {
		if strings.Contains(path, part) {
			return true
		}
	}
	return false
}

// textsOf lists string constants, those that are added up as a whole.
func textsOf(file *ast.File) (texts []string) {
	ast.Inspect(file, func(node ast.Node) bool {
		switch node.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BinaryExpr, *ast.BasicLit:
			if text, ok := constant(node.(ast.Expr)); ok {
				texts = append(texts, text)
				return false
			}
		}
		return true
	})
	return texts
}

func constant(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, err := strconv.Unquote(e.Value)
			return text, err == nil
		}
	case *ast.ParenExpr:
		return constant(e.X)
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			left, okLeft := constant(e.X)
			right, okRight := constant(e.Y)
			return left + right, okLeft && okRight
		}
	}
	return "", false
}

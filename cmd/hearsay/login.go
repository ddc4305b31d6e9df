package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/seed-4e9f7b04/hearsay/audit"
	"github.com/seed-4e9f7b04/hearsay/internal/config"
	"github.com/seed-4e9f7b04/hearsay/internal/oauth"
)

func newLogin() *cobra.Command {
	var file string
	var noBrowser, lacking, status, asJSON bool
	cmd := &cobra.Command{
		Use:   "login [flags] SERVER",
		Short: "Sign in to a protected MCP server",
		Long: `Sign in to a server of the file that has a section oauth. The command finds out who authorizes for the server, shows where you
will sign in and for what, opens the address when you press Enter, and waits for the browser to come back to 127.0.0.1. The tokens are
kept in hearsay's state folder, for this server alone; the gateway renews them, and says so when you have to run this command again.

Look at the host before you press Enter: unless the file names the issuer, the server chose it. Where the browser runs on another
machine, it ends at an address that does not open: paste that address here.

What this does not stop: the server gets a token for itself and may use it for all that its scopes allow.`,
		Example: `  hearsay login crm -c hearsay.yaml
  hearsay login crm --no-browser    # only show the address
  hearsay login crm --lacking       # with scopes it has since refused calls for
  hearsay login --status --json     # where you are signed in`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if status && (noBrowser || lacking) {
				return usageError("--status only looks; leave the other flags out")
			}
			if !status && len(args) != 1 || len(args) > 1 {
				return usageError("name one server; hearsay login --status lists those that have a section oauth")
			}
			f, err := loadFile(file)
			if err != nil {
				return err
			}
			if status {
				return showAccounts(cmd, f, args, asJSON)
			}
			account, log, err := accountOnRecord(f, args[0])
			if err != nil {
				return err
			}
			if log != nil {
				defer log.Close()
			}
			return login(cmd, account, log, loginOptions{server: args[0], noBrowser: noBrowser, lacking: lacking, json: asJSON})
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&file, "config", "c", "", "the `FILE` with the server (default: hearsay/hearsay.yaml in your configuration folder)")
	flags.BoolVar(&noBrowser, "no-browser", false, "show the address and open nothing")
	flags.BoolVar(&lacking, "lacking", false, "also ask for the scopes that the server has since refused calls for")
	flags.BoolVar(&status, "status", false, "show where you are signed in, and sign in nowhere")
	flags.BoolVar(&asJSON, "json", false, "print the address and the outcome, or the status, as lines of JSON")
	return cmd
}

type loginOptions struct {
	server                   string
	noBrowser, lacking, json bool
}

// login has the person sign in, and tells what came of it.
func login(cmd *cobra.Command, account *oauth.Account, log *audit.Log, opt loginOptions) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	out, tell := cmd.OutOrStdout(), cmd.ErrOrStderr()
	stdin, isFile := cmd.InOrStdin().(*os.File)
	opens := !opt.noBrowser && isFile && term.IsTerminal(int(stdin.Fd()))
	st, err := account.SignIn(ctx, opt.lacking, func(r oauth.Request) error {
		if opt.json {
			if err := json.NewEncoder(out).Encode(map[string]any{"open": r.Address, "issuer": r.Issuer, "resource": r.Resource, "scopes": r.Scopes, "redirect": r.Redirect}); err != nil {
				return err
			}
		}
		describeRequest(tell, r, opens)
		go answers(cmd.InOrStdin(), tell, r, opens) // ends with its input, or with the process
		return nil
	})
	if err != nil {
		if ctx.Err() != nil {
			return errors.New("nobody was signed in")
		}
		return fmt.Errorf("signing in to %s: %w", opt.server, err)
	}
	if log != nil {
		if err := log.Append(audit.Event{Kind: audit.Change, Server: opt.server, Detail: map[string]string{"what": "signed in", "issuer": st.Issuer, "scopes": strings.Join(st.Scopes, " ")}}); err != nil {
			return fmt.Errorf("signed in, but not on record: %w", err)
		}
	}
	if opt.json {
		return json.NewEncoder(out).Encode(st)
	}
	_, err = fmt.Fprintln(out, describeAccount(st))
	return err
}

// describeRequest shows what the person is about to agree to, before any browser opens.
func describeRequest(w io.Writer, r oauth.Request, opens bool) {
	fmt.Fprintf(w, "hearsay: sign-in to %s\n  for     %s\n  at      %s (issuer %s)\n", r.Server, r.Resource, r.Host, r.Issuer)
	if r.Before != "" {
		fmt.Fprintf(w, "  BEFORE  it was at %s: if you do not know why it changed, stop\n", showControls(r.Before))
	}
	if len(r.Scopes) > 0 {
		fmt.Fprintf(w, "  scopes  %s\n", strings.Join(r.Scopes, " "))
	}
	fmt.Fprintf(w, "\n  %s\n\n", r.Address)
	if opens {
		fmt.Fprint(w, "Press Enter to open it in your browser, or Ctrl-C to stop. ")
	} else {
		fmt.Fprint(w, "Open it in your browser. ")
	}
	fmt.Fprintf(w, "If the browser runs elsewhere,\npaste here where it ends, %s?…\n", r.Redirect)
}

// answers reads what the person types: Enter opens the browser, an address is where one ended.
func answers(in io.Reader, tell io.Writer, r oauth.Request, opens bool) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<10)
	for lines.Scan() {
		switch line := strings.TrimSpace(lines.Text()); {
		case line == "" && opens:
			opens = false
			if err := openBrowser(r.Address); err != nil {
				fmt.Fprintf(tell, "hearsay: no browser could be opened (%v); open the address yourself\n", err)
			}
		case line != "":
			if err := r.Paste(line); err != nil {
				fmt.Fprintf(tell, "hearsay: this is not the answer: %v\n", err)
			}
		}
	}
}

// openBrowser hands an address to the desktop, as one argument and through no shell.
func openBrowser(address string) error {
	command := []string{"xdg-open", address}
	switch runtime.GOOS {
	case "darwin":
		command = []string{"open", address}
	case "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler", address}
	}
	cmd := exec.Command(command[0], command[1:]...)
	if err := cmd.Start(); err != nil {
		return err
	}
	go cmd.Wait()
	return nil
}

func newLogout() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "logout [flags] SERVER",
		Short: "Sign out of a protected MCP server",
		Long: `Have the authorization server take the tokens back, where it offers that, and forget them here. A gateway that runs does not send
them again. What the server did with its token before stays done.`,
		Example: "  hearsay logout crm -c hearsay.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("name one server; hearsay login --status lists those that have a section oauth")
			}
			f, err := loadFile(file)
			if err != nil {
				return err
			}
			account, log, err := accountOnRecord(f, args[0])
			if err != nil {
				return err
			}
			if log != nil {
				defer log.Close()
				if err := log.Append(audit.Event{Kind: audit.Change, Server: args[0], Detail: map[string]string{"what": "signing out"}}); err != nil {
					return err
				}
			}
			revoked, err := account.SignOut(cmd.Context())
			if err != nil {
				return fmt.Errorf("signing out of %s: %w", args[0], err)
			}
			if revoked {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: signed out, the tokens are taken back\n", args[0])
			} else {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: signed out here; its authorization server has not taken the tokens back, so they count until they expire\n", args[0])
			}
			return err
		},
	}
	cmd.Flags().StringVarP(&file, "config", "c", "", "the `FILE` with the server (default: hearsay/hearsay.yaml in your configuration folder)")
	return cmd
}

// accountOf makes the account of a server of the file.
func accountOf(f *config.File, name string) (*oauth.Account, error) {
	if _, err := f.GatewayServers(); err != nil {
		return nil, err
	}
	section := f.Servers[name]
	if section == nil {
		return nil, usageError("%s names no server %q; it has %s", f.Path, name, strings.Join(f.ServerNames(), ", "))
	}
	if section.OAuth == nil {
		return nil, usageError("server %s has no section oauth in %s; write oauth: {} there, or give it a header", name, f.Path)
	}
	stateDir, err := config.StateDir()
	if err != nil {
		return nil, err
	}
	return section.Account(name, stateDir)
}

// accountOnRecord is accountOf, with the audit log for what is done to it; nil where the file has none.
func accountOnRecord(f *config.File, name string) (*oauth.Account, *audit.Log, error) {
	account, err := accountOf(f, name)
	if err != nil {
		return nil, nil, err
	}
	log, err := f.Audit.Open()
	return account, log, err
}

// showAccounts prints where the person is signed in.
func showAccounts(cmd *cobra.Command, f *config.File, names []string, asJSON bool) error {
	if len(names) == 0 {
		for _, name := range f.ServerNames() {
			if f.Servers[name].OAuth != nil {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "hearsay: no server of %s has a section oauth\n", f.Path)
	}
	out := cmd.OutOrStdout()
	for _, name := range names {
		account, err := accountOf(f, name)
		if err != nil {
			return err
		}
		st, err := account.Status()
		if err != nil {
			return err
		}
		if asJSON {
			err = json.NewEncoder(out).Encode(st)
		} else {
			_, err = fmt.Fprintln(out, describeAccount(st))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func describeAccount(st oauth.Status) string {
	if !st.SignedIn {
		why := st.Why
		if why == "" {
			why = "nobody has signed in"
		}
		return fmt.Sprintf("%s: not signed in (%s); run hearsay login %s", st.Server, showControls(why), st.Server)
	}
	text := fmt.Sprintf("%s: signed in at %s", st.Server, showControls(st.Issuer))
	if len(st.Scopes) > 0 {
		text += ", scopes " + strings.Join(st.Scopes, " ")
	}
	switch {
	case st.Renewable:
		text += ", renewed without you"
	case !st.Expires.IsZero():
		text += ", until " + st.Expires.Local().Format(time.DateTime)
	}
	if len(st.Lacking) > 0 {
		text += "; the server has refused calls that need " + strings.Join(st.Lacking, " ") + " (hearsay login " + st.Server + " --lacking)"
	}
	return text
}

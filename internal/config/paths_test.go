package config

import (
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// each calls f with every string of v, made to hold one of everything, and the keys that lead to it.
func each(v reflect.Value, key string, f func(key string, v reflect.Value)) {
	switch v.Kind() {
	case reflect.String:
		f(key, v)
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		each(v.Elem(), key, f)
	case reflect.Slice:
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		each(v.Index(0), key, f)
	case reflect.Map:
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		name, value := reflect.ValueOf("x").Convert(v.Type().Key()), reflect.New(v.Type().Elem()).Elem()
		if old := v.MapIndex(name); old.IsValid() {
			value.Set(old)
		}
		each(value, key, f)
		v.SetMapIndex(name, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if tag := strings.TrimSuffix(v.Type().Field(i).Tag.Get("yaml"), ",inline"); tag != "-" && v.Type().Field(i).IsExported() {
				each(v.Field(i), strings.Trim(key+"."+tag, "."), f)
			}
		}
	}
}

// What is a path, by the name of its key, and what a secret. A key of another name that holds one must be added here as well.
var (
	pathKey   = regexp.MustCompile(`(^|[._])(file|cert|key|client_ca|lock|dir)$|sandbox\.(project|state|read|write|hide)$`)
	secretKey = regexp.MustCompile(`(secret|password|headers)$`)
)

func TestEveryPathMayBeginAtHome(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	var f File
	file := reflect.ValueOf(&f).Elem()
	fill := func(path, secret string) {
		each(file, "", func(key string, v reflect.Value) {
			if v.SetString(path); secretKey.MatchString(key) {
				v.SetString(secret)
			}
		})
	}
	fill("~/in/it", "file:~/in/it")
	if err := f.resolve(); err != nil {
		t.Fatal(err)
	}
	var paths []string
	each(file, "", func(key string, v reflect.Value) {
		want := "~/in/it"
		if pathKey.MatchString(key) {
			want = filepath.Join(home, "in", "it")
			paths = append(paths, key)
		} else if secretKey.MatchString(key) {
			want = "file:" + filepath.Join(home, "in", "it")
			paths = append(paths, key)
		}
		if v.String() != want {
			t.Errorf("%s: %q, want %q", key, v, want)
		}
	})
	for _, key := range []string{"audit.file", "user_key_file", "serve.clients.token_file", "servers.sandbox.read", "servers.headers", "credentials.secret", "proxy.tls.client_ca"} {
		if !slices.Contains(paths, key) {
			t.Errorf("%s was not looked at, but %q", key, paths)
		}
	}
	fill("/in/it", "env:NAME")
	f.paths(func(key string, at *string) {
		for written, want := range map[string]string{"in/it": "is relative", "./it": "is relative", "~ann/it": "is relative", "/in/it": ""} {
			if key == "pins: lock" && written != "~ann/it" {
				want = ""
			}
			*at = written
			if err := f.resolve(); (err == nil) != (want == "") || err != nil && !(strings.Contains(err.Error(), want) && strings.HasPrefix(err.Error(), key)) {
				t.Errorf("%s: %s: %v", key, written, err)
			}
		}
		*at = "/in/it"
	})
}

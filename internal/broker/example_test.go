package broker_test

import (
	"fmt"
	"log"

	"github.com/seed-4e9f7b04/hearsay/egress"
	"github.com/seed-4e9f7b04/hearsay/internal/broker"
)

// A plain request to a listed host becomes HTTPS with the secret in its head. The secret itself does not print.
func ExampleBroker_For() {
	secret, err := broker.NewSecret([]byte("secret-of-the-example"))
	if err != nil {
		log.Fatal(err)
	}
	b, err := broker.New([]broker.Options{{Host: "api.example.com", Header: "Authorization: Bearer {secret}", Secret: secret}})
	if err != nil {
		log.Fatal(err)
	}
	asked, err := egress.ParseTarget("api.example.com:80", 0)
	if err != nil {
		log.Fatal(err)
	}
	https, credential, err := b.For("build", asked, "/v1/items")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s %q %v\n", https, credential.Stamp(nil), secret)
	// Output: api.example.com:443 "Authorization: Bearer secret-of-the-example\r\n" [secret]
}

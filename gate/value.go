package gate

// Kind is how a value is read before it is compared.
type Kind uint8

const (
	Any     Kind = iota // found out from the value
	Mail                // a mail address
	Link                // a URL with host and path
	Host                // a host name or address
	Account             // an IBAN or another account number
	Phone               // a telephone number
	Time                // a date, a time, or both
	Path                // a path or a file's name
	ID                  // an identifier issued by a server
	Name                // what people call someone or something
	Amount              // a number with a meaning, such as a sum
	Secret              // a password, key or token
	Text                // free text
)

var kindNames = []string{"any", "mail", "link", "host", "account", "phone", "time", "path", "id", "name", "amount", "secret", "text"}

func (k Kind) String() string { return name(kindNames, uint8(k)) }

func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

func (k *Kind) UnmarshalText(text []byte) error {
	i, err := parseName("kind", kindNames, string(text))
	*k = Kind(i)
	return err
}

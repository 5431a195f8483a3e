package bucket

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"

	"slowpath/internal/source/hostfs"
)

// keys are the access key and its secret: of the file that is named, of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, of
// ~/.aws/credentials (AWS_SHARED_CREDENTIALS_FILE, AWS_PROFILE), or of the role of the pod, container or instance.
// Files are read now: an agent gives root up later.
func (o Options) keys() (*credentials.Credentials, error) {
	if o.Credentials != "" {
		if _, err := hostfs.ReadRegular(hostfs.Root{}, o.Credentials, maxFileBytes); err != nil {
			return nil, err // the library waits for a FIFO
		}
		keys := credentials.NewFileAWSCredentials(o.Credentials, "")
		value, err := keys.GetWithContext(nil)
		if err == nil && value.AccessKeyID == "" {
			err = errors.New("there is no key")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w: write a line [default], then aws_access_key_id = … and "+
				"aws_secret_access_key = …", o.Credentials, err)
		}
		return keys, nil
	}
	if os.Getenv("AWS_ACCESS_KEY_ID") != "" {
		return credentials.NewEnvAWS(), nil
	}
	keys := credentials.NewFileAWSCredentials("", "")
	if value, err := keys.GetWithContext(nil); err == nil && value.AccessKeyID != "" {
		return keys, nil
	}
	return credentials.New(role{&credentials.IAM{Client: &http.Client{
		Timeout: 5 * time.Second, Transport: &http.Transport{}, // a proxy would ask for its own role
	}}}), nil
}

// errNoKey says that there is neither a key nor a role.
var errNoKey = errors.New("there is no access key")

// role is that of a pod, container or instance.
type role struct{ *credentials.IAM }

// RetrieveWithCredContext implements credentials.Provider.
func (r role) RetrieveWithCredContext(c *credentials.CredContext) (credentials.Value, error) {
	value, err := r.IAM.RetrieveWithCredContext(c)
	if err != nil {
		err = fmt.Errorf("%w, and this host has no role that gives one (%w)", errNoKey, err)
	}
	return value, err
}
